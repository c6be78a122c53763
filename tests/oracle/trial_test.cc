// Hypotheses held against outputs that were made under them: gross faults, tiny ones, and ones that were not planted.
#include "oracle/trial.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cases/materialize.h"
#include "kernels/runner.h"
#include "oracle/measure.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {
namespace {

/// A sound kernel's outputs on a case, and what they are moved by: answer under the fault minus the right answer.
struct Stage {
  explicit Stage(const std::string& line, const std::string& kernel = "fa2_bf16")
      : problem(materialize(parse_case(line))), view(problem), counterfactual(view) {
    const RunOutcome run = in_process_runner()->run(kernel, problem.params, problem.inputs, problem.outputs);
    evaluation = op_named("attention").evaluate(problem, run.declared, Level::kT1);
    outputs = run.outputs;
  }
  RowOutput answer(std::size_t row, const Hypothesis& h) {
    std::vector<std::int32_t> keys;
    view.admissible_keys(view.rows()[row], keys);
    return counterfactual.attend(view.rows()[row], keys, h);
  }
  RowOutput without(std::size_t row, std::int32_t key) {
    std::vector<std::int32_t> keys;
    view.admissible_keys(view.rows()[row], keys);
    std::erase(keys, key);
    return counterfactual.attend(view.rows()[row], keys);
  }
  void move(std::size_t row, const RowOutput& by) {
    const RowOutput right = answer(row, {});
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const OutputTruth& truth = evaluation.truth.outputs[k];
      const std::size_t n = k == 0 ? right.o.size() : 1;
      for (std::size_t c = 0; c < n; ++c) {
        const Format format = truth.layout.format;
        const std::int64_t at = truth.element[row * n + c];
        const double was = decode(format, load_code(outputs[k].bytes.data(), format, at));
        const double d = k == 0 ? by.o[c] - right.o[c] : by.lse - right.lse;
        store_code(outputs[k].bytes.data(), format, at, encode(format, was + d));
      }
    }
  }
  void move_all(const Hypothesis& h) {
    for (std::size_t r = 0; r < view.rows().size(); ++r) move(r, answer(r, h));
  }
  Trial trial() const { return Trial(evaluation, outputs, 0x1p-9, 48); }
  Trial::Predict under(const Hypothesis& h) {
    return [this, h](std::size_t row) { return answer(row, h); };
  }

  Problem problem;
  AttentionProblem view;
  Counterfactual counterfactual;
  Evaluation evaluation;
  std::vector<Tensor> outputs;
};

constexpr const char* kLine = "attention hq=2 sq=12 skv=300 d=32 q=normal@5 k=normal@6 v=normal@7";

TEST(Trial, ARightKernelHasNothingToExplain) {
  Stage stage(kLine);
  const Trial trial = stage.trial();
  EXPECT_EQ(trial.failing_rows(), 0U);
  EXPECT_EQ(trial.rows().size(), 24U);
  EXPECT_FALSE(trial.fit(stage.under({.gain = 1.1})).explains());
}

TEST(Trial, TheHypothesisBehindAGrossFaultExplainsItAndOthersDoNot) {
  Stage stage(kLine);
  stage.move_all({.gain = 1.25});
  const Trial trial = stage.trial();
  const Fit right = trial.fit(stage.under({.gain = 1.25}));
  EXPECT_TRUE(right.explains());
  EXPECT_GT(right.removed(), 0.99);
  EXPECT_EQ(right.loud_explained, right.loud);
  EXPECT_FALSE(trial.fit(stage.under({.gain = 1.5})).explains());
  EXPECT_FALSE(trial.fit(stage.under({.ghosts = 8})).explains());
  EXPECT_FALSE(trial.fit([](std::size_t) { return std::nullopt; }).explains());
}

TEST(Trial, AFaultFarBelowTheToleranceOfOIsExplainedAndItsParameterFound) {
  for (const double gain : {1.0001, 0.999, 1.3}) {
    Stage stage(kLine);
    stage.move_all({.gain = gain});
    const FitAt fit = stage.trial().fit([&](std::size_t row, double t) { return stage.answer(row, {.gain = t}); },
                                        {.low = 0.5, .high = 1.5, .grid = 9});
    EXPECT_TRUE(fit.fit.explains()) << gain;
    EXPECT_NEAR(fit.value, gain, 4 * fit.standard_error + fit.budget) << gain;
    EXPECT_LT(fit.standard_error + fit.budget, 2e-4) << gain;
    EXPECT_GT(fit.standard_error, 0) << gain;
  }
}

TEST(Trial, AWholeParameterIsTriedAtIntegersOnly) {
  Stage stage(kLine);
  stage.move_all({.ghosts = 3});
  const FitAt fit = stage.trial().fit([&](std::size_t row, double t) { return stage.answer(row, {.ghosts = t}); },
                                      {.low = 1, .high = 9, .whole = true});
  EXPECT_TRUE(fit.fit.explains());
  EXPECT_EQ(fit.value, 3);
}

TEST(Trial, TheFirstFailingRowAloneDoesNotSpeakForTheOthers) {
  Stage stage(kLine);
  const auto channels_times = [&](std::size_t row, double t) {
    RowOutput out = stage.answer(row, {});
    for (std::size_t c = 0; c < 6; ++c) out.o[c] *= t;
    return out;
  };
  stage.move(3, channels_times(3, 0.9));
  stage.move(9, stage.answer(9, {.output_gain = -1}));
  EXPECT_EQ(stage.trial().rows().front(), 3U);
  EXPECT_FALSE(stage.trial().fit(channels_times, {.low = 0.9, .high = 1.1, .grid = 41}).fit.explains());
}

TEST(Trial, AHypothesisThatPredictsErrorsWhereThereAreNoneIsRefused) {
  Stage stage(kLine);
  stage.move(5, stage.without(5, 17));
  const Trial trial = stage.trial();
  EXPECT_EQ(trial.failing_rows(), 1U);
  EXPECT_EQ(trial.rows().front(), 5U);
  const Fit here =
      trial.fit([&](std::size_t row) { return row == 5 ? std::optional(stage.without(row, 17)) : std::nullopt; });
  EXPECT_TRUE(here.explains());
  const Fit everywhere = trial.fit([&](std::size_t row) { return std::optional(stage.without(row, 17)); });
  EXPECT_FALSE(everywhere.explains());
  EXPECT_TRUE(trial.tells_apart(here, everywhere));
}

TEST(Trial, HypothesesWithTheSamePredictionsCannotBeToldApart) {
  Stage stage(kLine);
  stage.move_all({.ghosts = 2});
  const Trial trial = stage.trial();
  const Fit ghosts = trial.fit(stage.under({.ghosts = 2}));
  const Fit one_heavy_ghost = trial.fit(stage.under({.ghosts = 1, .ghost_logit = 0x1.62e42fefa39efp-1}));
  EXPECT_FALSE(trial.tells_apart(ghosts, one_heavy_ghost));
  EXPECT_TRUE(trial.tells_apart(ghosts, trial.fit(stage.under({.ghosts = 3}))));
}

TEST(Trial, TheSpreadIsTheNumberOfRowsThatShareTheErrorOfNumbers) {
  Stage all(kLine), one(kLine), nan(kLine);
  all.move_all({.output_gain = 3});  // beyond the cap of a residual almost everywhere
  EXPECT_NEAR(all.trial().spread(), 24, 1.5);
  one.move(3, one.answer(3, {.output_gain = 3}));
  EXPECT_DOUBLE_EQ(one.trial().spread(), 1);
  RowOutput none = nan.answer(3, {});
  none.o.assign(none.o.size(), std::nan(""));
  nan.move(3, none);
  EXPECT_LT(nan.trial().spread(), 1.5);
  EXPECT_EQ(Stage(kLine).trial().spread(), 0);
}

TEST(Trial, NaNsAreExplainedByPredictedNaNsOnly) {
  Stage stage(kLine);
  const OutputTruth& o = stage.evaluation.truth.outputs[0];
  for (std::size_t c = 0; c < 32; ++c)
    store_code(stage.outputs[0].bytes.data(), Format::kBf16, o.element[c], encode(Format::kBf16, std::nan("")));
  const auto predict = [&](double value) {
    return [&stage, value](std::size_t row) -> std::optional<RowOutput> {
      if (row != 0) return std::nullopt;
      RowOutput out = stage.answer(row, {});
      out.o.assign(32, value);
      return out;
    };
  };
  EXPECT_TRUE(stage.trial().fit(predict(std::nan(""))).explains());
  EXPECT_FALSE(stage.trial().fit(predict(1)).explains());
}

}  // namespace
}  // namespace assay
