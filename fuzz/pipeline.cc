// run_case: the whole of assay in one function; everything else is a detail of one of its verbs.
#include "fuzz/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "cases/materialize.h"
#include "failure_catalog/classify.h"
#include "failure_catalog/matched_filter.h"
#include "failure_catalog/second_run.h"
#include "fuzz/kernel_experiment.h"
#include "oracle/measure.h"
#include "reports/view.h"

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
  if (run.broken.empty()) return std::nullopt;
  return Verdict{.kind = CaseVerdict::kUnclassified, .level = "invariant", .mode = {},
                 .evidence = fmt::format("the kernel {}", fmt::join(run.broken, "; ")),
                 .reason = {}};
}

std::int64_t total(const Measurement& m, std::int64_t OutputMeasure::*field) {
  std::int64_t sum = 0;
  for (const OutputMeasure& output : m.outputs) sum += output.*field;
  return sum;
}

/// The weakest level that some element fails, and how many fail there.
struct Failure {
  Level level = Level::kT0;
  std::int64_t rejected = 0;
};

Failure weakest_failure(const Measurement& m) {
  if (const std::int64_t rejected = total(m, &OutputMeasure::rejected); rejected > 0) return {Level::kT0, rejected};
  for (const Level level : {Level::kT1, Level::kT2}) {
    std::int64_t rejected = 0;
    for (const OutputMeasure& output : m.outputs)
      for (const TierMeasure& tier : output.tiers)
        if (tier.level == level) rejected += tier.rejected;
    if (rejected > 0) return {level, rejected};
  }
  return {};
}

Verdict verdict_of_outputs(const Scene& scene) {
  const Measurement& m = scene.measurement;
  Verdict v;
  if (const Failure failure = weakest_failure(m); failure.rejected > 0) {
    const bool formats_alone = failure.level == Level::kT0;
    v.level = formats_alone ? "fail_t0" : failure.level == Level::kT1 ? "fail_t1" : "fail_t2";
    v.evidence = fmt::format("{} of {} elements lie outside what the declared {} can give{}", failure.rejected,
                             total(m, &OutputMeasure::judged), formats_alone ? "arithmetic" : "structure",
                             formats_alone ? "" : ": the kernel or its declaration is wrong");
    v.kind = CaseVerdict::kUnclassified;
    if (const std::optional<Classification> found = classify(scene)) {
      v.kind = CaseVerdict::kFinding;
      v.mode = found->mode->name;
      v.evidence = found->diagnosis.evidence;
      v.estimate = found->diagnosis.estimate;
      v.rivals = found->diagnosis.rivals;
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

std::string highest_level(const Measurement& m) {
  Level level = Level::kT0;
  for (const OutputMeasure& output : m.outputs)
    for (const TierMeasure& tier : output.tiers) level = std::max(level, tier.level);
  return std::string(level_name(level));
}

constexpr double kSureOfStructure = 0.98;  // share of bit-equal outputs; below it part of the structure is not in the family

/// What the outputs say about a structure that the kernel does not declare, and whether T1 under that structure would hold.
void infer_structure(const Op& op, const Case& c, const Problem& problem, const Arithmetic& declared,
                     const std::vector<Tensor>& outputs, Record& record) {
  if (op.infer == nullptr) return;
  record.inferred = op.infer(problem, declared, outputs);
  if (!record.inferred || record.inferred->bit_equal < kSureOfStructure) return;
  const Evaluation evaluation = op.evaluate(problem, record.inferred->arithmetic, Level::kT1);
  const Measurement m = measure(evaluation, outputs);
  const Failure failure = weakest_failure(m);
  if (failure.rejected > 0)
    record.warnings.push_back(fmt::format("{} elements lie outside T1 under the inferred structure ({})", failure.rejected,
                                          record.inferred->structure));
  for (std::string& warning : filter_warnings({c, problem, record.inferred->arithmetic, evaluation, m, outputs}))
    record.warnings.push_back("under the inferred structure, " + std::move(warning));
}

/// What says more than the verdict.
void add_evidence(const Scene& scene, Level level, Record& record) {
  const Op& op = op_named(scene.c.op);
  if (record.verdict.kind == CaseVerdict::kClean) {
    record.warnings = filter_warnings(scene);
    if (level >= Level::kT1 && scene.evaluation.bound.tiers.empty())
      infer_structure(op, scene.c, scene.problem, scene.declared, scene.outputs, record);
  }
  record.known_wrong = op.known_wrong(scene.problem, scene.evaluation);
}

/// Why a kernel of that name is not asked about a case of this op: the case's parameters would mean nothing to it.
std::optional<std::string> refused_op(Runner& runner, std::string_view kernel, const std::string& op) {
  const std::string own = runner.op_of(kernel);
  if (own.empty() || own == op) return std::nullopt;
  return "computes " + own + ", not " + op;
}

bool failed(const Verdict& verdict) {
  return verdict.kind == CaseVerdict::kFinding || verdict.kind == CaseVerdict::kUnclassified;
}

/// Facts of the rows in which an element is rejected at any level.
std::vector<RowFacts> rejected_rows(const Truth& truth, const Measurement& m) {
  std::vector<RowFacts> rows;
  for (std::size_t i = 0; i < truth.rows.size(); ++i)
    if (std::any_of(m.outputs.begin(), m.outputs.end(), [&](const OutputMeasure& o) { return o.rows[i].rejected > 0; }))
      rows.push_back(truth.rows[i]);
  return rows;
}

/// Runs that wrote different bits are a failure, whatever the first of them wrote.
void add_difference(Verdict& verdict, const std::string& difference, std::string_view mode, const Problem& problem) {
  const CaseVerdict kind = mode.empty() ? CaseVerdict::kUnclassified : CaseVerdict::kFinding;
  if (!failed(verdict))
    verdict = {.kind = kind, .level = "invariant", .mode = std::string(mode), .evidence = difference, .reason = {}};
  else
    verdict.evidence += "; " + difference;
  if (verdict.kind == CaseVerdict::kUnclassified && !mode.empty()) verdict.kind = kind, verdict.mode = mode;
  std::vector<std::string>& rivals = verdict.rivals;
  if (!mode.empty() && verdict.mode != mode && std::find(rivals.begin(), rivals.end(), mode) == rivals.end())
    rivals.emplace_back(mode);
  if (verdict.mode == "unused_data_poison" && has_gaps(problem) && verdict.rivals.empty())
    verdict.rivals.emplace_back("stride_or_dtype");
}

RepeatedRun runs_of(Runner& runner, std::string_view kernel, const Case& c, const Problem& problem, int runs) {
  if (runs <= 1) return run_repeatedly(runner, kernel, problem, {}, runs);
  const Problem other = neighbour(c);
  return run_repeatedly(runner, kernel, problem, refilled(c), runs, &other);
}

RunOutcome skipped(std::string reason) {
  RunOutcome outcome;
  outcome.status = RunStatus::kSkipped;
  outcome.reason = std::move(reason);
  return outcome;
}

}  // namespace

Record judge_outputs(const Case& c, const Problem& problem, const Arithmetic& declared, const RunOutcome& run, const Judging& judging,
                     Experiment* experiment) {
  Record record;
  record.case_line = print_case(c);
  record.variant = run.facts.variant;
  record.device = run.facts.device;
  record.declared = declared;
  if (const std::optional<Verdict> verdict = verdict_of_run(run)) {
    record.verdict = *verdict;
    return record;
  }
  const auto start = std::chrono::steady_clock::now();
  const Op& op = op_named(c.op);
  const Evaluation evaluation = op.evaluate(problem, declared, judging.level);
  record.measurement = measure(evaluation, run.outputs);
  record.bound_level = highest_level(record.measurement);
  const Scene scene(c, problem, declared, evaluation, record.measurement, run.outputs, experiment);
  record.verdict = verdict_of_outputs(scene);
  if (failed(record.verdict)) record.failed_rows = rejected_rows(evaluation.truth, record.measurement);
  if (judging.observe) judging.observe(scene);
  if (judging.evidence) add_evidence(scene, judging.level, record);
  const bool sampled = std::any_of(problem.inputs.begin(), problem.inputs.end(), [](const Tensor& t) { return t.layout.role == "rows"; });
  for (const RowFacts& row : evaluation.truth.rows)
    if (sampled) record.sampled_rows.push_back({row.batch, row.head, row.query});
  record.assumptions = evaluation.bound.assumptions;
  record.oracle_seconds = seconds_since(start);
  return record;
}

Record run_problem(const Case& c, const Problem& problem, std::string_view kernel, Runner& runner, const Judging& judging,
                   const Repeats& repeats) {
  const auto start = std::chrono::steady_clock::now();
  const std::optional<std::string> other_op = refused_op(runner, kernel, c.op);
  RepeatedRun run;
  if (other_op)
    run.outcome = skipped(*other_op);
  else
    run = runs_of(runner, kernel, c, problem, repeats.runs);
  const double kernel_seconds = seconds_since(start);
  KernelExperiment experiment(runner, kernel, problem);
  Record record = judge_outputs(c, problem, run.outcome.declared, run.outcome, judging, &experiment);
  if (run.difference.empty() && failed(record.verdict) && run.outcome.broken.empty())
    run.difference = rerun_difference(runner, kernel, problem, run.outcome.outputs, repeats.reruns);
  if (!run.difference.empty()) {
    add_difference(record.verdict, run.difference, run.mode, problem);
    record.repro = fmt::format("assay check {} --repeat {} --case {}", kernel, std::max(repeats.runs, 2),
                               shell_quoted(record.case_line));
  }
  record.kernel = kernel;
  record.kernel_seconds = kernel_seconds;
  return record;
}

Record run_case(const Case& c, std::string_view kernel, Runner& runner, const Judging& judging, const Repeats& repeats) {
  return run_problem(c, materialize(c), kernel, runner, judging, repeats);
}

}  // namespace assay
