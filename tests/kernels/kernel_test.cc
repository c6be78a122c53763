// Attention kernels against a plain fp64 loop, and the conventions that have one exact answer.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/attention_kernels.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class EveryKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryKernel, ComputesListedRowsToTheSameBitsAsAllRows) {
  const std::string text = "hq=2 hkv=1 sq=200 skv=230 d=32 mask=causal window=100,-1" + home_of(GetParam());
  const Scenario all(text);
  const Scenario some(text + " rows=20 rows_seed=3");
  ASSERT_EQ(some.inputs.back().layout.role, "rows");
  const RunOutcome full = run(GetParam(), all);
  const RunOutcome part = run(GetParam(), some);
  ASSERT_EQ(part.status, RunStatus::kOk) << part.reason;
  const TensorView rows = some.inputs.back().view();
  for (std::int64_t r = 0; r < 20; ++r) {
    const auto at = [&](std::int64_t c) { return static_cast<std::int64_t>(rows.value(rows.element(r, c))); };
    for (std::int64_t c = 0; c < 32; ++c) {
      const std::int64_t e = all.at(all.outputs[0], at(0), at(1), at(2), c);
      EXPECT_EQ(part.outputs[0].view().code(e), full.outputs[0].view().code(e));
    }
    const std::int64_t e = all.at(all.outputs[1], at(0), at(1), at(2), -1);
    EXPECT_EQ(part.outputs[1].view().code(e), full.outputs[1].view().code(e));
  }
}

TEST_P(EveryKernel, MakesARowWithANanOrPlusInfScoreNan) {
  for (const double special : {kNan, kInf}) {
    for (const std::int64_t key : {std::int64_t{0}, std::int64_t{150}, std::int64_t{299}}) {
      Scenario s("sq=2 skv=300 d=16" + home_of(GetParam()));
      s.set("q", 0, 0, 1, 3, 1.0);
      s.set("q", 0, 0, 0, 3, 0.0);  // row 0: 0 * inf is NaN too
      s.set("k", 0, 0, key, 3, special);
      const RunOutcome outcome = run(GetParam(), s);
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t c = 0; c < 16; ++c)
          EXPECT_TRUE(std::isnan(outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, i, c))));
        const double lse = outcome.outputs[1].view().value(i);
        EXPECT_TRUE(std::isnan(lse) || (i == 1 && lse == kInf)) << lse;
      }
    }
  }
}

TEST_P(EveryKernel, GivesAMinusInfScoreWeightZero) {
  if (find_kernel(GetParam())->formats[0] == Format::kE4m3) GTEST_SKIP() << "e4m3 has no infinity";
  Scenario s("sq=1 skv=200 d=16 scale=1" + home_of(GetParam()));
  s.set("q", 0, 0, 0, 3, -1.0);
  s.set("k", 0, 0, 199, 3, kInf);
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(differences(s, plain_attention(s), outcome.outputs, tolerance_of(GetParam(), s)), "");
}

TEST_P(EveryKernel, SurvivesTilesAndRowsWhoseBiasIsMinusInf) {
  Scenario s("sq=2 skv=600 d=16 mask=additive" + home_of(GetParam()));
  Tensor& mask = s.input("mask");
  for (std::int64_t j = 0; j < 600; ++j) {
    if (j < 64 || j >= 128) mask.output().set_code(j, encode(Format::kFp32, -kInf));
    mask.output().set_code(600 + j, encode(Format::kFp32, -kInf));
  }
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(differences(s, plain_attention(s), outcome.outputs, tolerance_of(GetParam(), s)), "");
}

TEST_P(EveryKernel, GivesOneKeysValueExactly) {
  Scenario s("sq=3 skv=1 d=16 scale=2" + home_of(GetParam()));
  s.scale_all("q", 100);
  const RunOutcome outcome = run(GetParam(), s);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t c = 0; c < 16; ++c)
      EXPECT_EQ(outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, i, c)), s.value("v", 0, 0, 0, c));
}

TEST_P(EveryKernel, SurvivesLogitsFarBelowZero) {
  Scenario s("sq=2 skv=300 d=16 scale=1 mask=causal" + home_of(GetParam()));
  for (std::int64_t i = 0; i < 2; ++i) s.set("q", 0, 0, i, 0, -240);
  for (std::int64_t j = 0; j < 300; ++j) s.set("k", 0, 0, j, 0, 256);
  const RunOutcome outcome = run(GetParam(), s);
  Tolerance tolerance = tolerance_of(GetParam(), s);
  const bool narrow = GetParam().starts_with("fa3");  // scores of 13 fraction bits say little but that they are large
  tolerance.o += narrow ? 2 : 61440 * 0x1p-23;        // logits near -61440, rounded to fp32
  tolerance.lse += narrow ? 0x1p-11 : 0x1p-23;        // relative
  EXPECT_EQ(differences(s, plain_attention(s), outcome.outputs, tolerance), "");
}

TEST_P(EveryKernel, KeepsSubnormalValues) {
  Scenario s("sq=1 skv=1 d=16" + home_of(GetParam()));
  const double smallest = info(s.p.input).min_subnormal;
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 0, c, smallest * static_cast<double>(c));
  const RunOutcome outcome = run(GetParam(), s);
  for (std::int64_t c = 0; c < 16; ++c)
    EXPECT_EQ(outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, 0, c)), s.value("v", 0, 0, 0, c));
}

TEST_P(EveryKernel, DeclaresEveryField) {
  for (const std::string text : {"sq=3 skv=5000", "sq=3 skv=1", "sq=3 skv=5 mask=additive d=128 softcap=5"}) {
    const Kernel* kernel = find_kernel(GetParam());
    ASSERT_NE(kernel, nullptr);
    const Arithmetic a = kernel->declared(parse(text + home_of(GetParam())));
    EXPECT_NE(a.qk, Accumulate::kUnknown);
    EXPECT_NE(a.pv, Accumulate::kUnknown);
    EXPECT_NE(a.score_store, ScoreStore::kUnknown);
    EXPECT_NE(a.scale_form, ScaleForm::kUnknown);
    EXPECT_NE(a.exponential, Exponential::kUnknown);
    EXPECT_TRUE(a.p_known);
    EXPECT_NE(a.row_sum_of, RowSumOf::kUnknown);
    EXPECT_NE(a.row_sum_tree, RowSumTree::kUnknown);
    EXPECT_NE(a.normalize, Normalize::kUnknown);
    EXPECT_NE(a.subnormals, Subnormals::kUnknown);
    EXPECT_NE(a.max_policy, MaxPolicy::kUnknown);
    EXPECT_NE(a.tile_order, TileOrder::kUnknown);
    EXPECT_NE(a.tanh, Tanh::kUnknown);
    EXPECT_GT(a.tile_n, 0);
    EXPECT_GT(a.splits, 0);
  }
}

TEST_P(EveryKernel, RefusesOtherInputFormats) {
  const std::string other = GetParam().ends_with("bf16") ? "fp32" : "bf16";
  const Scenario s("sq=1 skv=1 dtype=" + other);
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_NE(outcome.reason.find("inputs only"), std::string::npos) << outcome.reason;
}

INSTANTIATE_TEST_SUITE_P(Attention, EveryKernel, testing::ValuesIn(kAttentionKernels),
                         [](const auto& kernel) { return kernel.param; });

}  // namespace
}  // namespace assay
