// run_case: the whole of assay in one function; everything else is a detail of one of its verbs.
#include "fuzz/pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "cases/materialize.h"
#include "failure_catalog/classify.h"
#include "oracle/measure.h"

namespace assay {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A run that gave no outputs to judge.
std::optional<Verdict> verdict_of_run(const RunOutcome& run) {
  const auto verdict = [&](CaseVerdict kind) { return Verdict{.kind = kind, .level = {}, .mode = {}, .evidence = {}, .reason = run.reason}; };
  switch (run.status) {
    case RunStatus::kSkipped: return verdict(CaseVerdict::kSkipped);
    case RunStatus::kCrashed: return verdict(CaseVerdict::kCrashed);
    case RunStatus::kHung: return verdict(CaseVerdict::kHung);
    case RunStatus::kOk: break;
  }
  if (!run.guard_broken && !run.inputs_changed) return std::nullopt;
  return Verdict{.kind = CaseVerdict::kUnclassified, .level = "invariant", .mode = {},
                 .evidence = run.guard_broken ? "the kernel wrote outside the elements of its outputs"
                                              : "the kernel changed an input",
                 .reason = {}};
}

std::int64_t total(const Measurement& m, std::int64_t OutputMeasure::*field) {
  std::int64_t sum = 0;
  for (const OutputMeasure& output : m.outputs) sum += output.*field;
  return sum;
}

Verdict verdict_of_outputs(const Scene& scene) {
  const Measurement& m = scene.measurement;
  Verdict v;
  if (const std::int64_t rejected = total(m, &OutputMeasure::rejected); rejected > 0) {
    v.level = "fail_t0";
    v.evidence = fmt::format("{} of {} elements lie outside what the declared arithmetic can give", rejected,
                             total(m, &OutputMeasure::judged));
    v.kind = CaseVerdict::kUnclassified;
    if (const std::optional<Classification> found = classify(scene)) {
      v.kind = CaseVerdict::kFinding;
      v.mode = found->mode->name;
      v.evidence = found->diagnosis.evidence;
    }
  } else if (m.rows_out_of_range > 0) {
    v.kind = CaseVerdict::kOutOfRange;
    v.reason = m.out_of_range;
  } else if (const std::int64_t uncertain = total(m, &OutputMeasure::uncertain); uncertain > 0) {
    v.kind = CaseVerdict::kUncertain;
    v.reason = fmt::format("{} elements stay undecided at the oracle's largest precision", uncertain);
  } else if (m.rows == 0 || is_vacuous(scene.evaluation)) {
    v.kind = CaseVerdict::kVacuous;
    v.reason = m.rows == 0 ? "no row is judged" : "the zero or the negated output would pass";
  }
  return v;
}

}  // namespace

Record judge_outputs(const Case& c, const Problem& problem, const Arithmetic& declared, const RunOutcome& run) {
  Record record;
  record.case_line = print_case(c);
  record.variant = run.facts.variant;
  record.declared = declared;
  if (const std::optional<Verdict> verdict = verdict_of_run(run)) {
    record.verdict = *verdict;
    return record;
  }
  const auto start = std::chrono::steady_clock::now();
  const Op& op = op_named(c.op);
  const Evaluation evaluation = op.evaluate(problem, declared);
  record.measurement = measure(evaluation, run.outputs);
  record.verdict = verdict_of_outputs({c, problem, evaluation, record.measurement, run.outputs});
  record.known_wrong = op.known_wrong(problem, evaluation);
  const bool sampled = std::any_of(problem.inputs.begin(), problem.inputs.end(), [](const Tensor& t) { return t.layout.role == "rows"; });
  for (const RowFacts& row : evaluation.truth.rows)
    if (sampled) record.sampled_rows.push_back({row.batch, row.head, row.query});
  record.assumptions = evaluation.bound.assumptions;
  record.oracle_seconds = seconds_since(start);
  return record;
}

Record run_problem(const Case& c, const Problem& problem, std::string_view kernel, Runner& runner) {
  const auto start = std::chrono::steady_clock::now();
  const RunOutcome run = runner.run(kernel, problem.params, problem.inputs, problem.outputs);
  const double kernel_seconds = seconds_since(start);
  Record record = judge_outputs(c, problem, run.declared, run);
  record.kernel = kernel;
  record.kernel_seconds = kernel_seconds;
  return record;
}

Record run_case(const Case& c, std::string_view kernel, Runner& runner) {
  return run_problem(c, materialize(c), kernel, runner);
}

}  // namespace assay
