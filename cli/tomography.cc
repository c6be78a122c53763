// `assay tomography KERNEL --case LINE`: the keys that a kernel's rows use, read off its outputs, beside the oracle's.
#include "failure_catalog/tomography.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cases/materialize.h"
#include "cli/fleet.h"
#include "cli/verbs.h"
#include "oracle/error.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidestPicture = 160, kTallestPicture = 100;

struct Options {
  std::string kernel, line;
  std::vector<std::string> plugins;
  bool json = false;
};

/// One character per key: '#' used as it should be, '.' rightly unused, 'o' missing, 'X' extra, '~' weight beyond
/// rounding.
char cell(const RowWeights& row, std::size_t key, double rounding) {
  const double want = static_cast<double>(row.expected[key]), got = static_cast<double>(row.measured[key]);
  const auto in = [&](const std::vector<KeyRun>& runs) {
    const auto j = static_cast<std::int64_t>(key);
    return std::any_of(runs.begin(), runs.end(), [&](const KeyRun& run) { return run.first <= j && j <= run.last; });
  };
  if (got - got != 0) return '?';
  if (in(row.missing)) return 'o';
  if (in(row.extra)) return 'X';
  if (!row.admissible[key] || got == 0) return '.';
  const double off = got / want / row.factor - 1;
  return off > rounding || off < -rounding ? '~' : '#';
}

/// The matrix of each head with a difference, or of the first head, where it is small.
std::string picture(const Tomography& t) {
  std::set<std::pair<std::int64_t, std::int64_t>> heads;
  for (const KeyDifference& difference : key_differences(t))
    for (const std::size_t r : difference.rows) heads.insert({t.rows[r].row.batch, t.rows[r].row.head});
  if (heads.empty() && !t.rows.empty()) heads.insert({t.rows[0].row.batch, t.rows[0].row.head});
  std::string text;
  std::size_t lines = 0;
  for (const auto& [batch, head] : heads) {
    std::string block = fmt::format("  b {} h {}\n", batch, head);
    for (const RowWeights& row : t.rows) {
      if (row.row.batch != batch || row.row.head != head) continue;
      if (row.expected.size() > kWidestPicture || ++lines > kTallestPicture) return text;
      block += fmt::format("  {:>4} ", row.row.query);
      for (std::size_t key = 0; key < row.expected.size(); ++key) block += cell(row, key, t.rounding);
      block += "\n";
    }
    text += block;
  }
  return text;
}

Json runs_of(const std::vector<KeyRun>& runs) {
  Json out = Json::array();
  for (const KeyRun& run : runs) out.push_back({run.first, run.last});
  return out;
}

Json document(const Case& c, const Options& options, const Tomography& t, const std::vector<std::string>& origins) {
  Json differences = Json::array();
  for (const KeyDifference& d : key_differences(t)) {
    Json rows = Json::array();
    for (const std::size_t r : d.rows) rows.push_back({t.rows[r].row.batch, t.rows[r].row.head, t.rows[r].row.query});
    differences.push_back({{"text", describe(d, t)},
                           {"rows", rows},
                           {"counted_from", d.from_diagonal ? "diagonal" : "key 0"},
                           {"missing", runs_of(d.missing)},
                           {"extra", runs_of(d.extra)},
                           {"finite", d.finite},
                           {"factor", {d.factor_low, d.factor_high}},
                           {"spread", d.spread},
                           {"keys_beyond_rounding", d.unequal}});
  }
  return {{"version", 1},
          {"tool", "assay tomography"},
          {"case", print_case(c)},
          {"kernel", options.kernel},
          {"runs", t.runs},
          {"rows", t.rows.size()},
          {"rounding", t.rounding},
          {"differences", differences},
          {"foreign_origins", origins}};
}

std::string text_of(const Case& c, const Options& options, const Tomography& t,
                    const std::vector<std::string>& origins) {
  std::string text = fmt::format("case {}\n{}: weights of {} rows from {} runs\n", print_case(c), options.kernel,
                                 t.rows.size(), t.runs);
  const std::vector<KeyDifference> differences = key_differences(t);
  if (differences.empty() && origins.empty())
    text += fmt::format("every row uses exactly its keys, with weights within rounding ({:.2g} %)\n", 100 * t.rounding);
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, differences.size()); ++i) text += describe(differences[i], t) + "\n";
  if (differences.size() > kMost) text += fmt::format("and {} groups of rows more\n", differences.size() - kMost);
  for (std::size_t i = 0; i < std::min(kMost, origins.size()); ++i) text += origins[i] + "\n";
  const std::string map = picture(t);
  if (!map.empty()) text += "# used, . not, o missing, X extra, ~ other weight, ? not finite\n" + map;
  return text;
}

int tomography(const Options& options) {
  const Case c = parse_case(options.line);
  const Problem problem = materialize(c);
  if (const std::optional<std::string> reason = no_tomography(problem, c.op))
    throw InputError("--case " + print_case(c) + ": " + *reason);
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::minutes(10), options.plugins);
  const KernelIdentity kernel = kernel_named(*fleet, options.kernel);
  std::string failure;
  const std::optional<Tomography> found = weight_tomography(problem, [&](const Problem& p) {
    RunOutcome run = fleet->run(kernel.name, p.params, p.inputs, p.outputs);
    if (run.status != RunStatus::kOk) failure = run.reason;
    return run.status == RunStatus::kOk ? std::optional(std::move(run.outputs)) : std::nullopt;
  });
  if (!found) throw InputError(fmt::format("{} on {}: no outputs: {}", kernel.name, print_case(c), failure));
  const std::vector<std::string> origins = foreign_origins(*found, attention_params(problem.params));
  if (options.json)
    fmt::print("{}\n", document(c, options, *found, origins).dump(1));
  else
    fmt::print("{}", text_of(c, options, *found, origins));
  return key_differences(*found).empty() && origins.empty() ? 0 : 1;
}

}  // namespace

void add_tomography(Verb& app, int& exit_code) {
  Verb verb = app.add("tomography", "the weight that each row of a kernel gives to each key, beside the right ones");
  const auto o = std::make_shared<Options>();
  verb.option("kernel", o->kernel, "kernel").required();
  verb.option("--case", o->line, "case line of attention; its values of V are replaced").required();
  add_plugin_option(verb, o->plugins);
  verb.flag("--json", o->json, "print JSON instead of text");
  verb.callback([o, &exit_code] { exit_code = tomography(*o); });
}

}  // namespace assay
