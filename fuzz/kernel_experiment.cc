// Reruns of one kernel for the classifier.
#include "fuzz/kernel_experiment.h"

namespace assay {

std::optional<std::vector<Tensor>> KernelExperiment::run(const Problem& problem) {
  if (runs_++ >= kMostRuns) return std::nullopt;
  RunOutcome outcome = runner_.run(kernel_, problem.params, problem.inputs, problem.outputs);
  if (outcome.status != RunStatus::kOk || !outcome.broken.empty()) return std::nullopt;
  declared_ = outcome.declared;
  return std::move(outcome.outputs);
}

std::optional<std::vector<Tensor>> KernelExperiment::rerun(Freshness freshness) {
  if (freshness == Freshness::kFreshProcess) runner_.restart();
  if (freshness == Freshness::kOtherFill) runner_.set_fill(1);
  std::optional<std::vector<Tensor>> outputs = run(problem_);
  if (freshness == Freshness::kOtherFill) runner_.set_fill(0);
  return outputs;
}

}  // namespace assay
