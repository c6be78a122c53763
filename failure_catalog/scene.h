// Scene: what a failure mode may look at, never a kernel's name; and what all modes share when they look at attention.
#pragma once

#include <memory>
#include <vector>

#include "cases/case.h"
#include "failure_catalog/experiment.h"
#include "oracle/measure.h"
#include "oracle/op.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/attention/kernel_replay.h"
#include "oracle/trial.h"

namespace assay {

/// The oracle's reading of an attention problem and answers under hypotheses. Owns nothing of the problem.
class AttentionView {
 public:
  explicit AttentionView(const Problem& raw) : problem(raw), counterfactual(problem) {}
  AttentionView(const AttentionView&) = delete;
  AttentionView& operator=(const AttentionView&) = delete;

  const AttentionProblem problem;
  Counterfactual counterfactual;

  /// Row `row` of the truth, and the keys it should use.
  const AttentionRow& row(std::size_t row) const { return problem.rows()[row]; }
  const std::vector<std::int32_t>& keys(std::size_t row);

 private:
  std::vector<std::int32_t> keys_;
};

class Scene {
 public:
  Scene(const Case& the_case, const Problem& the_problem, const Arithmetic& the_declared,
        const Evaluation& the_evaluation, const Measurement& the_measurement, const std::vector<Tensor>& the_outputs,
        Experiment* the_experiment = nullptr)
      : c(the_case),
        problem(the_problem),
        declared(the_declared),
        evaluation(the_evaluation),
        measurement(the_measurement),
        outputs(the_outputs),
        experiment(the_experiment) {}

  const Case& c;
  const Problem& problem;
  const Arithmetic& declared;
  const Evaluation& evaluation;
  const Measurement& measurement;
  const std::vector<Tensor>& outputs;
  Experiment* const experiment;  ///< null where the kernel is not there to be asked (`assay judge`)

  /// Residuals of sampled rows. Made when first asked for, like the view.
  const Trial& trial() const;
  /// Null for other ops than attention.
  AttentionView* attention() const;
  /// Unit roundoff of P's format, 0 if it is not rounded.
  double p_unit() const;
  /// Replays under the declared arithmetic; null for other ops than attention.
  KernelReplay* replay() const;

 private:
  mutable std::unique_ptr<Trial> trial_;
  mutable std::unique_ptr<AttentionView> attention_;
  mutable std::unique_ptr<KernelReplay> replay_;
};

}  // namespace assay
