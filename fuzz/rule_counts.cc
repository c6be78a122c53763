// Counting what each rule rejects.
#include "fuzz/rule_counts.h"

#include <memory>

#include "cases/materialize.h"
#include "failure_catalog/judges/allclose.h"
#include "oracle/floor.h"
#include "oracle/measure.h"

namespace assay {
namespace {

/// The sets of one declaration.
struct Judges {
  Arithmetic declared;
  Evaluation evaluation;
  std::vector<JudgedLevel> levels;
};

std::unique_ptr<Judges> judges_of(const Op& op, const Problem& problem, const Arithmetic& declared, Level level) {
  auto judges = std::make_unique<Judges>(Judges{declared, op.evaluate(problem, declared, level), {}});
  judges->levels.push_back(judged_level(judges->evaluation, Level::kT0));
  for (const Tier& tier : judges->evaluation.bound.tiers)
    judges->levels.push_back(judged_level(judges->evaluation, tier.level));
  return judges;
}

std::int64_t rejected_by(const JudgedOutput& judged, const OutputTruth& truth, const Tensor& output) {
  std::int64_t rejected = 0;
  for (std::size_t i = 0; i < judged.sets.size(); ++i)
    rejected += !accepts(judged.sets[i], load_code(output.bytes.data(), truth.layout.format, truth.element[i]));
  return rejected;
}

std::vector<RuleCounts> counts_of(const Judges& judges, const std::vector<Tensor>& outputs) {
  const Measurement measurement = measure(judges.evaluation, outputs);
  std::vector<RuleCounts> all;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputTruth& truth = judges.evaluation.truth.outputs[k];
    const OutputMeasure& measured = measurement.outputs[k];
    RuleCounts counts{.role = measured.role, .judged = measured.judged, .levels = {}};
    counts.levels.push_back({.level = Level::kT0, .median_tau = measured.median_tau});
    for (const TierMeasure& tier : measured.tiers)
      counts.levels.push_back(
          {.level = tier.level, .median_tau = tier.median_tau, .gain = tier.gain, .gain_error = tier.gain_error});
    for (RuleCounts::AtLevel& at : counts.levels)
      for (const JudgedLevel& judged : judges.levels)
        if (judged.name == level_name(at.level)) at.rejected = rejected_by(judged.outputs[k], truth, outputs[k]);
    for (std::size_t n = 0; n < kAllcloseTolerances.size(); ++n)
      counts.outside[n] = allclose(truth, outputs[k], kAllcloseTolerances[n], kAllcloseTolerances[n]).outside;
    all.push_back(std::move(counts));
  }
  return all;
}

}  // namespace

std::vector<KernelCounts> rule_counts(const Case& c, const std::vector<std::string>& kernels, Runner& runner,
                                      Level level) {
  const Op& op = op_named(c.op);
  const Problem problem = materialize(c);
  std::vector<std::unique_ptr<Judges>> known;
  std::vector<KernelCounts> all;
  for (const std::string& kernel : kernels) {
    const RunOutcome run = runner.run(kernel, problem.params, problem.inputs, problem.outputs);
    KernelCounts& counts = all.emplace_back(KernelCounts{.kernel = kernel, .no_outputs = {}, .outputs = {}});
    if (run.status != RunStatus::kOk) {
      counts.no_outputs = run.reason;
      continue;
    }
    const Judges* judges = nullptr;
    for (const std::unique_ptr<Judges>& candidate : known)
      if (candidate->declared == run.declared) judges = candidate.get();
    if (judges == nullptr) judges = known.emplace_back(judges_of(op, problem, run.declared, level)).get();
    counts.outputs = counts_of(*judges, run.outputs);
  }
  return all;
}

}  // namespace assay
