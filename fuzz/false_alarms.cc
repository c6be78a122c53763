// Opinions on correct kernels.
#include "fuzz/false_alarms.h"

#include <fmt/format.h>

#include <set>

#include "cases/materialize.h"
#include "failure_catalog/judges/judge.h"
#include "fuzz/draw.h"
#include "fuzz/pairwise.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "oracle/error.h"

namespace assay {
namespace {

void add(Alarms& alarms, bool alarm, const std::string& what) {
  ++alarms.runs;
  if (!alarm) return;
  if (alarms.alarms++ == 0) alarms.first = what;
}

/// What one case adds; `cases` and `cases_alarmed` are 0 or 1.
FalseAlarms of_case(const Case& c, const std::vector<KernelIdentity>& kernels, Runner& runner) {
  FalseAlarms found;
  const Problem problem = materialize(c);
  const Op& op = op_named(c.op);
  std::optional<Truth> truth;
  JudgeMemo memo;
  for (const KernelIdentity& kernel : kernels) {
    if (!takes(kernel, c)) continue;
    const RunOutcome run = runner.run(kernel.name, problem.params, problem.inputs, problem.outputs);
    const Record record = judge_outputs(c, problem, run.declared, run);
    const std::string what = fmt::format("{}: {}: ", kernel.name, record.case_line);
    switch (record.verdict.kind) {
      case CaseVerdict::kClean: ++found.clean; break;
      case CaseVerdict::kOutOfRange: ++found.out_of_range; break;
      case CaseVerdict::kUncertain: ++found.uncertain; break;
      case CaseVerdict::kVacuous: ++found.vacuous; break;
      case CaseVerdict::kSkipped: ++found.skipped; continue;
      case CaseVerdict::kFinding:
      case CaseVerdict::kUnclassified:
      case CaseVerdict::kCrashed:
      case CaseVerdict::kHung: break;
    }
    add(found.rules["assay"], exit_code(summarize({record})) % 6 != 0,
        what + record.verdict.evidence + record.verdict.reason);
    if (run.status != RunStatus::kOk) continue;
    if (!truth) truth = op.evaluate(problem, run.declared, Level::kT0).truth;
    for (const Judge* judge : all_judges())
      if (const std::optional<Opinion> opinion = judge->judge({c, problem, *truth, run.outputs, &memo}))
        add(found.rules[std::string(judge->name)], !opinion->passes, what + opinion->reason);
  }
  for (auto& [name, alarms] : found.rules) {
    alarms.cases = alarms.runs > 0;
    alarms.cases_alarmed = alarms.alarms > 0;
  }
  return found;
}

void add(FalseAlarms& all, const FalseAlarms& one) {
  for (const auto& [name, alarms] : one.rules) {
    Alarms& sum = all.rules[name];
    if (sum.alarms == 0) sum.first = alarms.first;
    sum.runs += alarms.runs;
    sum.alarms += alarms.alarms;
    sum.cases += alarms.cases;
    sum.cases_alarmed += alarms.cases_alarmed;
  }
  all.clean += one.clean;
  all.out_of_range += one.out_of_range;
  all.uncertain += one.uncertain;
  all.vacuous += one.vacuous;
  all.skipped += one.skipped;
}

}  // namespace

std::vector<Case> adversarial_cases(std::size_t count, std::uint64_t seed) {
  std::vector<Case> suite = suite_cases("adversarial"), cases;
  if (count < suite.size()) {
    for (std::size_t n = 0; n < count; ++n) cases.push_back(std::move(suite[n * suite.size() / count]));
    return cases;
  }
  std::set<std::string> seen;
  for (const Case& c : suite) seen.insert(print_case(c));
  Draw draw(seed, "adversarial");
  while (suite.size() < count) {
    Case c = parse_case(chosen_line([&](std::size_t n) { return draw(n); }));
    if (seen.insert(print_case(c)).second) suite.push_back(std::move(c));
  }
  return suite;
}

FalseAlarms false_alarms(const FalseAlarmOptions& options, const OpenRunner& open) {
  const std::vector<Case> cases = adversarial_cases(options.cases, options.seed);
  std::vector<KernelIdentity> kernels = open()->kernels();
  std::erase_if(kernels, [](const KernelIdentity& k) { return k.mutant || k.device || !k.plugin.empty(); });
  std::vector<FalseAlarms> found(cases.size());
  FalseAlarms all;
  all.left_out = in_parallel(cases.size(), options.jobs, open, options.deadline, [&](std::size_t i, Runner& runner) {
    found[i] = of_case(cases[i], kernels, runner);
    found[i].cases = 1;
  });
  for (const FalseAlarms& one : found) {
    add(all, one);
    all.cases += one.cases;
  }
  return all;
}

}  // namespace assay
