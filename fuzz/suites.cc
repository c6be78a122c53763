// Curated suites come from suites/*.txt; edge and adversarial are pairwise covers; the catalogue has cases of its own.
#include "fuzz/suites.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/pairwise.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

constexpr std::array<SuiteInfo, 11> kSuites{{
    {"smoke", "a few of everything, in seconds"},
    {"edge", "lengths, heads, dims and conventions around their edges: a pairwise cover, and curated cases"},
    {"adversarial", "inputs that break kernels: a pairwise cover of recipe x mask x layout x dtype x length residue"},
    {"dense", "attention only: adversarial values on contiguous tensors, causal and window masks, 16- and 32-bit inputs"},
    {"probe", "exact probes: every key position, ghosts, scale, rescaling, merges, masks, pages, heads, 8 bits"},
    {"witness", "the cases that come with the catalogue's modes, each with three seeds"},
    {"regimes", "five production shapes, full and causal, rows sampled"},
    {"device", "small cases that reach every device kernel and tail path: for check --sanitize"},
    {"huge", "tensors past 2^31 elements: for a GPU and a host of 64 GB"},
    {"real", "q, k, v of MiniLM-L6, layers 0, 3 and 5"},
    {"llm_like", "synthetic: D = 128, GQA, causal, with published outlier-channel and attention-sink figures"},
}};

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(find_data_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void add_file(const std::string& file, std::vector<Case>& cases) {
  int number = 0;
  for (const std::string& line : lines_of(file)) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    try {
      cases.push_back(parse_case(line));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
}

/// The witnesses of every mode, each with its own seeds and two shifted sets of them.
void add_witnesses(std::vector<Case>& cases) {
  std::vector<Case> written;
  for (const Mode* mode : all_modes()) add_file(fmt::format("failure_catalog/{}/witness.case", mode->name), written);
  for (const std::uint64_t shift : {0, 1000, 2000})
    for (Case c : written) {
      for (auto& [role, source] : c.sources)
        if (source.seed != 0) source.seed += shift;
      cases.push_back(std::move(c));
    }
}

/// The recipe that tells most about a case: that of the tensor which decides the weights, unless only another is special.
std::string recipe_of(const Case& c) {
  constexpr std::array<std::string_view, 6> kTelling{"k", "v", "q", "x", "lse_parts", "o_parts"};
  for (const std::string_view role : kTelling)
    for (const auto& [name, source] : c.sources)
      if (name == role && source.recipe != "normal" && source.recipe != "probe") return source.recipe;
  return "normal";
}

}  // namespace

std::vector<SuiteInfo> all_suites() { return {kSuites.begin(), kSuites.end()}; }

std::vector<Case> suite_cases(std::string_view name) {
  std::vector<Case> cases;
  const bool known = std::any_of(kSuites.begin(), kSuites.end(), [&](const SuiteInfo& s) { return s.name == name; });
  if (!known) {
    std::string names;
    for (const SuiteInfo& suite : kSuites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
    throw InputError(fmt::format("suite '{}' is unknown; there are {}", name, names));
  }
  if (name == "edge" || name == "adversarial") {
    for (const Op* op : all_ops()) {
      if (name == "edge") add_file(fmt::format("oracle/ops/{}/cases.txt", op->name), cases);
      for (const std::string& line : pairwise_lines(op->name, name)) cases.push_back(parse_case(line));
    }
  } else if (name == "dense") {
    for (const std::string& line : pairwise_lines("attention", name)) cases.push_back(parse_case(line));
  } else if (name == "witness") {
    add_witnesses(cases);
  } else {
    add_file(fmt::format("suites/{}.txt", name), cases);
  }
  std::set<std::string> seen;
  std::erase_if(cases, [&](const Case& c) { return !seen.insert(print_case(c)).second; });
  return cases;
}

bool takes(const KernelIdentity& kernel, const Case& c) {
  if (kernel.op != c.op) return false;
  const std::string dtype(info(op_named(c.op).input_format(c.params)).name);
  return kernel.dtypes.empty() || std::find(kernel.dtypes.begin(), kernel.dtypes.end(), dtype) != kernel.dtypes.end();
}

std::map<std::string, std::string> coverage_cells(const Case& c) {
  std::map<std::string, std::string> cells = op_named(c.op).cells(c.params);
  cells.insert({"recipe", recipe_of(c)});
  return cells;
}

}  // namespace assay
