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
  std::optional<std::vector<Tensor>> outputs = first.experiment->run(problem);
  if (!outputs) return nullptr;
  return std::unique_ptr<SecondScene>(new SecondScene(first, std::move(c), std::move(problem), std::move(*outputs)));
}

SecondScene::SecondScene(const Scene& first, Case c, Problem problem, std::vector<Tensor> outputs)
    : case_(std::move(c)),
      problem_(std::move(problem)),
      declared_(first.experiment->declared()),
      outputs_(std::move(outputs)),
      evaluation_(op_named(case_.op).evaluate(problem_, declared_, level_of(first))),
      measurement_(measure(evaluation_, outputs_)),
      experiment_(first.experiment->about(problem_)),
      scene_(case_, problem_, declared_, evaluation_, measurement_, outputs_, experiment_.get()) {}

bool SecondScene::fails() const { return !failing_rows(measurement_).empty(); }

}  // namespace assay
