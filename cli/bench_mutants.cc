// `assay bench mutants CASE`: what T0, T1, T2 and allclose reject of each kernel's outputs, mutants beside sound
// kernels.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/fleet.h"
#include "cli/verbs.h"
#include "fuzz/rule_counts.h"
#include "fuzz/suites.h"
#include "oracle/measure.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string line;
  std::vector<std::string> kernels{"mutants", "correct"};
  Level level = Level::kT2;
  bool json = false;
};

Json to_json(const RuleCounts& counts) {
  Json levels = Json::array(), allclose = Json::object();
  for (const RuleCounts::AtLevel& at : counts.levels)
    levels.push_back({{"level", level_name(at.level)},
                      {"rejected", at.rejected},
                      {"median_tau", at.median_tau},
                      {"gain", at.gain},
                      {"gain_error", at.gain_error}});
  for (std::size_t n = 0; n < kAllcloseTolerances.size(); ++n)
    allclose[fmt::format("{:g}", kAllcloseTolerances[n])] = counts.outside[n];
  return {{"role", counts.role}, {"judged", counts.judged}, {"levels", levels}, {"allclose_outside", allclose}};
}

Json document(const Case& c, const std::vector<KernelCounts>& all) {
  Json kernels = Json::array();
  for (const KernelCounts& counts : all) {
    Json outputs = Json::array();
    for (const RuleCounts& output : counts.outputs) outputs.push_back(to_json(output));
    kernels.push_back({{"kernel", counts.kernel}, {"no_outputs", counts.no_outputs}, {"outputs", outputs}});
  }
  return {{"version", 1},
          {"tool", "assay bench mutants"},
          {"case", print_case(c)},
          {"environment", environment()},
          {"kernels", kernels}};
}

std::string text_of(const std::vector<KernelCounts>& all) {
  std::string text;
  for (const KernelCounts& counts : all) {
    text += fmt::format("{}{}\n", counts.kernel, counts.no_outputs.empty() ? "" : ": " + counts.no_outputs);
    for (const RuleCounts& output : counts.outputs) {
      text += fmt::format("  {:<4} of {}:", output.role, output.judged);
      for (const RuleCounts::AtLevel& at : output.levels)
        text += fmt::format("  {} {}", level_name(at.level), at.rejected);
      for (std::size_t n = 0; n < kAllcloseTolerances.size(); ++n)
        text += fmt::format("  allclose {:g} {}", kAllcloseTolerances[n], output.outside[n]);
      text += "\n";
    }
  }
  return text;
}

std::vector<std::string> kernels_for(const Options& options, Fleet& fleet, const Case& c) {
  std::vector<std::string> names;
  for (const KernelIdentity& kernel : choose_kernels(fleet, options.kernels))
    if (takes(kernel, c)) names.push_back(kernel.name);
  return names;
}

int bench_mutants(const Options& options) {
  const Case c = parse_case(options.line);
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::minutes(10));
  const std::vector<KernelCounts> all = rule_counts(c, kernels_for(options, *fleet, c), *fleet, options.level);
  if (options.json)
    fmt::print("{}\n", document(c, all).dump(1));
  else
    fmt::print("case {}\n{}", print_case(c), text_of(all));
  return 0;
}

}  // namespace

void add_bench_mutants(Verb& app, int& exit_code) {
  Verb verb = bench_group(app).add(
      "mutants", "what T0, T1, T2 and allclose reject of each kernel's outputs on one case");
  const auto o = std::make_shared<Options>();
  verb.option("case", o->line, "case line").required();
  verb.option("--kernel", o->kernels, "kernel, `correct` or `mutants` (repeatable; default: both)")
      .one_each();
  add_level_option(verb, o->level);
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = bench_mutants(*o); });
}

}  // namespace assay
