// Curated suites come from suites/*.txt; edge and adversarial are pairwise covers.
#include "fuzz/suites.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "cases/file_source.h"
#include "fuzz/pairwise.h"
#include "oracle/error.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

constexpr std::array<SuiteInfo, 6> kSuites{{
    {"smoke", "a few of everything, in seconds"},
    {"edge", "lengths, heads, dims and conventions around their edges: a pairwise cover, and curated cases"},
    {"adversarial", "inputs that break kernels: a pairwise cover of recipe x mask x layout x dtype x length residue"},
    {"regimes", "five production shapes, full and causal, rows sampled"},
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

std::string recipe_of(const Case& c) {
  // The tensor with the most telling recipe names the case's cell: k for logits, unless only v or q is special.
  std::map<std::string, std::string> by_role;
  for (const auto& [role, source] : c.sources) by_role[role] = source.recipe;
  for (const char* role : {"k", "v", "q"})
    if (by_role[role] != "normal" && by_role[role] != "probe" && !by_role[role].empty()) return by_role[role];
  return "normal";
}

}  // namespace

std::vector<SuiteInfo> all_suites() { return {kSuites.begin(), kSuites.end()}; }

std::vector<Case> suite_cases(std::string_view name) {
  std::vector<Case> cases;
  const bool known = std::any_of(kSuites.begin(), kSuites.end(), [&](const SuiteInfo& s) { return s.name == name; });
  if (!known) throw InputError(fmt::format("suite '{}' is unknown; there are smoke, edge, adversarial, regimes, real, llm_like", name));
  if (name == "edge") add_file("oracle/ops/attention/cases.txt", cases);
  if (name == "edge" || name == "adversarial") {
    for (const std::string& line : pairwise_lines(name)) cases.push_back(parse_case(line));
  } else {
    add_file(fmt::format("suites/{}.txt", name), cases);
  }
  std::set<std::string> seen;
  std::erase_if(cases, [&](const Case& c) { return !seen.insert(print_case(c)).second; });
  return cases;
}

std::map<std::string, std::string> coverage_cells(const Case& c) {
  const AttentionParams p = attention_params(c.params);
  std::string mask = p.causal ? (p.align == Align::kTopLeft ? "causal_tl" : "causal") : "";
  const auto join = [&](std::string_view part) { mask += (mask.empty() ? "" : "+") + std::string(part); };
  if (p.window_left >= 0 || p.window_right >= 0)
    join(p.window_ends == WindowEnds::kLeftExclusive ? "window_left_exclusive" : "window");
  if (p.data_mask == DataMask::kBool) join("bool");
  if (p.data_mask == DataMask::kAdditive) join("additive");
  std::string layout = p.batching == Batching::kPacked ? "packed" : p.batching == Batching::kPadded ? "padded"
                       : p.layout == Layout::kBshd ? "bshd" : "bhsd";
  if (p.pad_rows > 0 || p.pad_dim > 0) layout += "+pad";
  const std::int64_t residue = p.len_kv % 64;
  const std::string residue_cell = residue == 0 ? "0" : residue == 1 ? "1" : residue == 63 ? "63" : residue < 32 ? "2..31" : "32..62";
  const std::string length = p.len_kv >= 1024 ? ">=1024" : p.len_kv >= 128 ? "128..1023" : p.len_kv >= 16 ? "16..127" : "<16";
  return {{"recipe", recipe_of(c)}, {"mask", mask.empty() ? "none" : mask}, {"layout", layout},
          {"dtype", std::string(info(p.input).name)}, {"residue", residue_cell}, {"length", length}};
}

}  // namespace assay
