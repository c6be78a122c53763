// A second scene: run, truth and bound, measurement.
#include "failure_catalog/second_scene.h"

#include "failure_catalog/second_run.h"

namespace assay {
namespace {

Level level_of(const Scene& scene) {
  return scene.evaluation.bound.tiers.empty() ? Level::kT1 : scene.evaluation.bound.tiers.back().level;
}

}  // namespace

std::unique_ptr<SecondScene> SecondScene::of(const Scene& first, Case c, Problem problem) {
  if (first.experiment == nullptr) return nullptr;
  std::unique_ptr<SecondScene> second(new SecondScene(*first.experiment, std::move(c), std::move(problem)));
  std::optional<std::vector<Tensor>> outputs = second->experiment_->run(second->problem_);
  if (!outputs) return nullptr;
  second->outputs_ = std::move(*outputs);
  second->declared_ = second->experiment_->declared();
  second->evaluation_ = op_named(second->case_.op).evaluate(second->problem_, second->declared_, level_of(first));
  second->measurement_ = measure(second->evaluation_, second->outputs_);
  return second;
}

SecondScene::SecondScene(const Experiment& experiment, Case c, Problem problem)
    : case_(std::move(c)),
      problem_(std::move(problem)),
      experiment_(experiment.about(problem_)),
      scene_(case_, problem_, declared_, evaluation_, measurement_, outputs_, experiment_.get()) {}

bool SecondScene::fails() const { return !failing_rows(measurement_).empty(); }

}  // namespace assay
