// Matched filters: the estimate of a planted scale or gain lies within three standard errors; correct kernels give no
// warning.
#include "failure_catalog/matched_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/materialize.h"
#include "failure_catalog/deviations.h"
#include "kernels/kernel.h"
#include "kernels/runner.h"

namespace assay {
namespace {

/// A case, the outputs of an FlashAttention-2 kernel with that deviation and no other error, and what is asked of them.
struct Planted {
  Case c;
  Problem problem;
  Arithmetic declared;
  std::vector<Tensor> outputs;
  Evaluation evaluation;
  Measurement measurement;

  Planted(const std::string& line, const Deviation& d, std::string_view kernel = "fa2_bf16")
      : c(parse_case(line)), problem(materialize(c)) {
    declared = find_kernel(kernel)->declared(problem.params);
    const AttentionProblem attention(problem);
    KernelReplay replay(attention, declared);
    for (const TensorLayout& layout : problem.outputs) fill_canary(outputs.emplace_back(Tensor{layout, {}}));
    for (std::size_t r = 0; r < attention.rows().size(); ++r) {
      const RowOutput row = *replay.row(r, d);
      const AttentionRow& at = attention.rows()[r];
      for (std::size_t channel = 0; channel < row.o.size(); ++channel)
        outputs[0].output().set_code(attention.o_element(at, static_cast<std::int64_t>(channel)),
                                     encode(attention.params().output, row.o[channel]));
      if (outputs.size() > 1) outputs[1].output().set_code(attention.lse_element(at), encode(Format::kFp32, row.lse));
    }
    evaluation = op_named("attention").evaluate(problem, declared, Level::kT1);
    measurement = measure(evaluation, outputs);
  }
  Scene scene() const { return {c, problem, declared, evaluation, measurement, outputs}; }
};

std::string line(int n, int rows) {
  return fmt::format("attention hq={} sq={} skv={} d={} q=normal@{} k=normal@{} v=normal@{}", 1 + n % 3, rows,
                     200 + 97 * n, n % 2 == 0 ? 64 : 128, 100 + n, 200 + n, 300 + n);
}

Filtered of(const std::vector<FilteredMode>& all, std::string_view mode) {
  for (const FilteredMode& f : all)
    if (f.mode->name == mode) return f.result;
  ADD_FAILURE() << mode << " has no tangent";
  return {};
}

TEST(MatchedFilter, EstimatesScaleAndGainWithinThreeStandardErrors) {
  for (int n = 0; n < 8; ++n) {
    const double size = (n % 4 + 1) * (n % 2 == 0 ? 1e-4 : -1e-4);
    const Planted scale(line(n, 24), {.scale = 1 + size});
    const Filtered s = of(filter_modes(scale.scene()), "logit_scale");
    EXPECT_NEAR(s.value, size, 3 * s.standard_error) << n;
    EXPECT_LT(s.standard_error, 1e-3) << n;
    const Planted gain(line(n, 24), {.gain = 1 + size});
    const Filtered g = of(filter_modes(gain.scene()), "value_scale");
    EXPECT_NEAR(g.value, size, 3 * g.standard_error) << n;
    EXPECT_LT(g.standard_error, 1e-3) << n;
  }
}

TEST(MatchedFilter, IsSignificantBeyondErrorsAndBudgetOnly) {
  FilteredMode f{.mode = nullptr,
                 .parameter = "x",
                 .result = {.elements = 5000, .value = 7e-5, .standard_error = 1e-5, .budget = 0.5e-5, .drop = 49}};
  EXPECT_TRUE(f.significant());
  f.result.budget = 2e-5;
  EXPECT_FALSE(f.significant());
  f.result.budget = 0, f.result.elements = 900;
  EXPECT_FALSE(f.significant());
}

TEST(MatchedFilter, SaysNothingOfCorrectKernels) {
  for (int n = 0; n < 4; ++n) {
    const Planted right(line(n, 24), {});
    EXPECT_TRUE(filter_warnings(right.scene()).empty()) << line(n, 24) << filter_warnings(right.scene())[0];
    for (const std::string kernel : {"fa1_bf16", "fa2_bf16", "fa4_bf16", "split_bf16"}) {
      const RunOutcome run =
          in_process_runner()->run(kernel, right.problem.params, right.problem.inputs, right.problem.outputs);
      const Evaluation evaluation = op_named("attention").evaluate(right.problem, run.declared, Level::kT1);
      const Measurement measurement = measure(evaluation, run.outputs);
      const Scene scene(right.c, right.problem, run.declared, evaluation, measurement, run.outputs);
      for (const std::string& warning : filter_warnings(scene))
        ADD_FAILURE() << kernel << " on " << line(n, 24) << ": " << warning;
    }
  }
}

TEST(MatchedFilter, WarnsOfAScaleInOneSentence) {
  const Planted off(line(2, 48), {.scale = 1.003});
  const std::vector<std::string> warnings = filter_warnings(off.scene());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].starts_with("the softmax scale is off by 0.0029")) << warnings[0];
  EXPECT_NE(warnings[0].find("errors inside the tolerance could shift that by "), std::string::npos) << warnings[0];
}

// Where T1 judges, it sees less than a filter: among N elements one lies within ulp / N of a rounding edge and crosses
// it, while the filter's error falls with the root of N only. So no warning is to be had where nothing is rejected.
TEST(MatchedFilter, SeesNoScaleThatTheLevelOfReplaysLetsPass) {
  for (const double size : {3e-6, 1e-5}) {
    const Planted off("attention hq=4 sq=160 skv=96 d=64 dtype=fp16 lse=none q=normal@1 k=normal@2 v=normal@3",
                      {.scale = 1 + size}, "fa2_fp16");
    EXPECT_EQ(off.measurement.outputs[0].rejected, 0) << size;
    EXPECT_GT(off.measurement.outputs[0].tiers.at(0).rejected, 100) << size;
    for (const FilteredMode& f : filter_modes(off.scene())) EXPECT_FALSE(f.significant()) << f.parameter << size;
  }
}

TEST(WithError, PutsTheErrorInUnitsOfTheLastDigit) {
  EXPECT_EQ(with_error(1.0001003, 2.1e-6), "1.000100(2)");
  EXPECT_EQ(with_error(-0.25, 0.04), "-0.25(4)");
  EXPECT_EQ(with_error(12.3, 2), "12(2)");
  EXPECT_EQ(with_error(0.5, 0), "0.5");
  EXPECT_EQ(with_error(1e-7, 1), "1e-07");
}

}  // namespace
}  // namespace assay
