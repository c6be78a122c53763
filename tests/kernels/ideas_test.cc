// What sets each attention kernel apart from the others: normalisation, maxima, offsets, promotion, ranges, sinks.
#include <gtest/gtest.h>

#include "tests/kernels/attention_kernels.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double o_of(const RunOutcome& outcome, const Scenario& s, std::int64_t h, std::int64_t i, std::int64_t c) {
  return outcome.outputs[0].view().value(s.at(s.outputs[0], 0, h, i, c));
}
double lse_of(const RunOutcome& outcome, const Scenario& s, std::int64_t h, std::int64_t i) {
  return outcome.outputs[1].view().value(s.at(s.outputs[1], 0, h, i, -1));
}

TEST(NaiveKernel, IgnoresAMaskedValueThatIsNotFinite) {
  Scenario s("sq=2 skv=9 d=8 dtype=bf16 mask=causal masked_nonfinite=ignored");
  s.set("v", 0, 0, 8, 2, kNan);
  s.set("k", 0, 0, 8, 2, kInf);
  const RunOutcome outcome = run("naive_bf16", s);
  for (std::int64_t c = 0; c < 8; ++c) EXPECT_FALSE(std::isnan(o_of(outcome, s, 0, 0, c)));
  EXPECT_TRUE(std::isnan(o_of(outcome, s, 0, 1, 2)));
}

TEST(SplitKernel, ReportsItsSplitsAndKeepsEmptyOnesOut) {
  // Causal row 0 of 400 sees keys in the first of two splits only.
  Scenario s("sq=400 skv=400 d=16 dtype=fp16 mask=causal rows=2");
  const RunOutcome outcome = run("split_fp16", s);
  EXPECT_EQ(outcome.declared.splits, 2);
  EXPECT_EQ(outcome.facts.variant, "2 splits, tile 64");
  for (std::int64_t c = 0; c < 16; ++c) EXPECT_EQ(o_of(outcome, s, 0, 0, c), s.value("v", 0, 0, 0, c));
}

TEST(Kernels, AreCalledWithLengthsThatFitOrCrashInWords) {
  Scenario s("b=2 sq=3 skv=5 d=8 dtype=bf16 batch=packed");
  Tensor& starts = s.input("cu_seqlens_kv");
  starts.output().set_code(2, 11);
  const RunOutcome outcome = run("fa2_bf16", s);
  EXPECT_EQ(outcome.status, RunStatus::kCrashed);
  EXPECT_NE(outcome.reason.find("cu_seqlens_kv"), std::string::npos) << outcome.reason;
}

/// V = 1 everywhere and all logits equal: O = 1 but for what accumulation loses.
double largest_loss(const std::string& kernel, std::int64_t keys) {
  Scenario s("sq=1 skv=" + std::to_string(keys) + " d=32 out=fp32" + dtype_of(kernel));
  s.scale_all("q", 0);
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t c = 0; c < 32; ++c) s.set("v", 0, 0, j, c, 1.125);
  const RunOutcome outcome = run(kernel, s);
  double largest = 0;
  for (std::int64_t c = 0; c < 32; ++c) largest = std::max(largest, 1 - o_of(outcome, s, 0, 0, c) / 1.125);
  return largest;
}

TEST(Fa3, PromotesEachTileSoThatSameSignSumsKeepTheirSize) {
  // The accumulator of 13 fraction bits drops what lies 2^13 below it: 32 x 256 x 1.125 against a sum that grows to
  // 4096 x 288.
  EXPECT_LT(largest_loss("fa3_e4m3", 4096), 2e-3);
  EXPECT_GT(largest_loss("fa3_e4m3_single", 4096), 2e-2);
  EXPECT_EQ(find_kernel("fa3_e4m3")->declared(parse("dtype=e4m3")).promote_n, 128);
  EXPECT_EQ(find_kernel("fa3_e4m3_single")->declared(parse("dtype=e4m3")).promote_n, 0);
}

TEST(Fa3, KeepsWeightsFarBelowTheMaximumByItsOffset) {
  // One key of logit 0 against 500 of logit -8: each weighs 3.4e-4, below half of e4m3's smallest number 2^-9 without
  // the offset.
  Scenario s("sq=1 skv=501 d=32 dtype=e4m3 scale=1");
  s.scale_all("q", 0);
  s.scale_all("k", 0);
  s.scale_all("v", 0);
  s.set("q", 0, 0, 0, 0, 8);
  for (std::int64_t j = 1; j < 501; ++j) {
    s.set("k", 0, 0, j, 0, -1);
    s.set("v", 0, 0, j, 5, 4);
  }
  const double share = 500 * std::exp(-8.0) / (1 + 500 * std::exp(-8.0));
  EXPECT_NEAR(o_of(run("fa3_e4m3", s), s, 0, 0, 5), 4 * share, 0.07 * 4 * share);
  EXPECT_NEAR(lse_of(run("fa3_e4m3", s), s, 0, 0), std::log1p(500 * std::exp(-8.0)), 1e-4)
      << "the LSE divides the offset out";
}

TEST(Fa4, LeavesTheMaximumWhereItWouldRiseByNoMoreThanTheThreshold) {
  // Logits (log2 units, scale ln 2) 0 in the first tile of 128 keys, `rise` in the second. If the maximum stays, P of
  // the second is 2^rise, rounded; if it rises, all P are 1. V = 1, so O - 1 is what the rounding of P does.
  const auto excess = [](double rise) {
    Scenario s("sq=1 skv=256 d=16 dtype=bf16 scale=0.6931472 out=fp32");
    s.scale_all("q", 0);
    s.scale_all("k", 0);
    s.set("q", 0, 0, 0, 0, 1);
    for (std::int64_t j = 128; j < 256; ++j) s.set("k", 0, 0, j, 0, rise);
    for (std::int64_t j = 0; j < 256; ++j) s.set("v", 0, 0, j, 2, 1);
    const RunOutcome lazy = run("fa4_bf16", s);
    const double wanted = std::log(128 + 128 * std::exp2(rise));
    EXPECT_NEAR(lse_of(run("fa2_bf16", s), s, 0, 0), wanted, 1e-5 * wanted);
    EXPECT_NEAR(lse_of(lazy, s, 0, 0), wanted, 1e-4 * wanted);
    return std::abs(o_of(lazy, s, 0, 0, 2) - 1);
  };
  EXPECT_GT(excess(7.90625), 3e-4);  // 239.86 becomes 240
  EXPECT_LT(excess(8.0625), 1e-5);
  EXPECT_LT(excess(100.0), 1e-5);
  const Arithmetic a = find_kernel("fa4_bf16")->declared(parse("sq=1"));
  EXPECT_EQ(a.max_policy, MaxPolicy::kLazy);
  EXPECT_EQ(a.lazy_threshold, 8);
}

TEST(Fa4, HasTheErrorOfItsCubicOnAQuarterOfTheKeys) {
  // Two keys; the second has y = -0.55 (log2), where the cubic is off by 8.5e-5, and lies at a cubic place (12) or an
  // exact one (3).
  const auto error = [](std::int64_t place) {
    Scenario s("sq=1 skv=16 d=16 dtype=bf16 scale=0.6931472 mask=bool out=fp32");
    for (std::int64_t j = 0; j < 16; ++j) s.input("mask").output().set_code(j, j == 0 || j == place ? 1 : 0);
    s.scale_all("q", 0);
    s.scale_all("k", 0);
    s.set("q", 0, 0, 0, 0, 1);
    s.set("k", 0, 0, place, 0, -0.5546875);  // fraction 0.4453
    const double lse = lse_of(run("fa4_bf16", s), s, 0, 0);
    return std::abs(lse - std::log1p(std::exp2(-0.5546875)));
  };
  EXPECT_GT(error(12), 2e-5);
  EXPECT_LT(error(12), 5e-5);
  EXPECT_LT(error(3), 2e-7);
}

TEST(Fa1, NormalisesEveryStepAndAgreesWithFlashAttention2) {
  Scenario s("hq=2 sq=3 skv=1000 d=32 dtype=fp16");
  const RunOutcome every = run("fa1_fp16", s), last = run("fa2_fp16", s);
  EXPECT_EQ(every.declared.normalize, Normalize::kEveryStep);
  int different = 0;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t c = 0; c < 32; ++c) {
      EXPECT_NEAR(o_of(every, s, 1, i, c), o_of(last, s, 1, i, c), 1e-3);
      different += o_of(every, s, 1, i, c) != o_of(last, s, 1, i, c);
    }
  EXPECT_GT(different, 0) << "own tile maxima and rounding every step must show somewhere";
}

TEST(Cascade, IsTwoRangesCutAtThePrefix) {
  const Arithmetic a = find_kernel("cascade_bf16")->declared(parse("sq=1 skv=100 prefix=30"));
  EXPECT_EQ(a.splits, 2);
  EXPECT_EQ(a.split_at, 30);
  Scenario s("hq=2 sq=5 skv=300 d=32 dtype=bf16 prefix=70 mask=causal window=200,-1 out=fp32");
  const RunOutcome apart = run("cascade_bf16", s), together = run("fa2_bf16", s);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t c = 0; c < 32; ++c) EXPECT_NEAR(o_of(apart, s, 1, i, c), o_of(together, s, 1, i, c), 4e-3);
}

class Sinks : public testing::TestWithParam<std::string> {};

TEST_P(Sinks, OfEverySizeTakeTheirShare) {
  for (const std::string kind : {"in_lse", "out_of_lse"})
    for (const double sink : {-kInf, -200.0, -3.0, 4.0, 90.0, 2000.0, kInf}) {
      Scenario s("hq=1 sq=3 skv=300 d=16 sink=" + kind + home_of(GetParam()));
      s.input("sink").output().set_code(0, encode(Format::kFp32, sink));
      const RunOutcome outcome = run(GetParam(), s);
      ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
      EXPECT_EQ(differences(s, plain_attention(s), outcome.outputs, tolerance_of(GetParam(), s)), "")
          << kind << ' ' << sink;
    }
}

TEST_P(Sinks, OfNanAreSeen) {
  Scenario s("hq=1 sq=2 skv=70 d=16 sink=in_lse mask=bool" + home_of(GetParam()));
  for (std::int64_t j = 0; j < 70; ++j) s.input("mask").output().set_code(j, 0);  // row 0 is empty
  s.input("sink").output().set_code(0, encode(Format::kFp32, kNan));
  const RunOutcome outcome = run(GetParam(), s);
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t c = 0; c < 16; ++c) EXPECT_TRUE(std::isnan(o_of(outcome, s, 0, i, c)));
    EXPECT_TRUE(std::isnan(lse_of(outcome, s, 0, i)));
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, Sinks, testing::ValuesIn(kAttentionKernels),
                         [](const auto& kernel) { return kernel.param; });

}  // namespace
}  // namespace assay
