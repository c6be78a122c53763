// Measurement and vacuity on evaluations made by hand.
#include "oracle/measure.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace assay {
namespace {

/// One fp32 output of one row per element.
Evaluation by_hand(const std::vector<double>& mid, double tau, ClassSet classes = kNumber) {
  const auto n = static_cast<std::int64_t>(mid.size());
  Evaluation e;
  OutputTruth truth;
  truth.layout = {.role = "o", .format = Format::kFp32, .shape = {n}, .strides = {1}, .offset = 0, .storage = n};
  for (std::int64_t i = 0; i < n; ++i) {
    truth.element.push_back(i);
    truth.row.push_back(static_cast<std::int32_t>(i));
    truth.mid.push_back(mid[static_cast<std::size_t>(i)]);
    truth.radius.push_back(0);
    truth.classes.push_back(classes);
    e.truth.rows.push_back({.keys = 1});
    e.bound.out_of_range.emplace_back();
  }
  e.truth.outputs.push_back(truth);
  e.bound.outputs.push_back({std::vector<double>(mid.size(), tau), std::vector<ClassSet>(mid.size(), 0)});
  return e;
}

Measurement measured(const Evaluation& e, const std::vector<float>& values) {
  Tensor output{.layout = e.truth.outputs[0].layout, .bytes = std::vector<std::byte>(values.size() * 4)};
  for (std::size_t i = 0; i < values.size(); ++i)
    store_code(output.bytes.data(), Format::kFp32, static_cast<std::int64_t>(i), encode(Format::kFp32, static_cast<double>(values[i])));
  return measure(e, {output});
}

TEST(Vacuity, ZeroOrNegatedAloneIsEnough) {
  EXPECT_FALSE(is_vacuous(by_hand({1, 1}, 0.5)));
  EXPECT_TRUE(is_vacuous(by_hand({1, 1}, 1.5))) << "zero passes, the negated does not";
  EXPECT_TRUE(is_vacuous(by_hand({0, 0}, 0.1)));
  EXPECT_FALSE(is_vacuous(by_hand({0, 3}, 0.1))) << "one element that can fail is enough";
  EXPECT_FALSE(is_vacuous(by_hand({0}, 0, kPlusInf)));
  EXPECT_TRUE(is_vacuous(by_hand({0}, 0, kZero)));
}

TEST(Measure, CountsWhatItSees) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Measurement m = measured(by_hand({1, 1, 1, 1, 1}, 0.25), {1.0F, 1.2F, 0.0F, nan, inf});
  const OutputMeasure& o = m.outputs[0];
  EXPECT_EQ(o.judged, 5);
  EXPECT_EQ(o.rejected, 3);
  EXPECT_EQ(o.bit_equal, 1);
  EXPECT_EQ(o.zero, 1);
  EXPECT_EQ(o.nan, 1);
  EXPECT_EQ(o.inf, 1);
  EXPECT_DOUBLE_EQ(o.max_error, 1);
  EXPECT_EQ(o.median_tau, 0.25);
  EXPECT_TRUE(o.worst.rejected);
  EXPECT_NEAR(o.rows[1].worst_used, 0.8, 1e-6);
  EXPECT_EQ(o.rows[0].rejected + o.rows[1].rejected, 0);
  EXPECT_EQ(o.rows[2].rejected + o.rows[3].rejected + o.rows[4].rejected, 3);
}

TEST(Measure, TheWorstElementIsARejectedOneIfThereIsAny) {
  Evaluation e = by_hand({1, 1}, 0.25);
  e.bound.outputs[0].tau[1] = 1e-30;  // a legal value may use more of a tiny tau than a wrong one of a large tau
  const Measurement m = measured(e, {1.6F, 1.0F});
  EXPECT_EQ(m.outputs[0].worst.element, 0);
}

TEST(Measure, UnconstrainedElementsAreNeitherRejectedNorCounted) {
  Evaluation e = by_hand({1, 1}, 0.25);
  e.bound.outputs[0].also[0] = kAnything;
  e.bound.out_of_range[0] = "S: 1 > 0";
  const Measurement m = measured(e, {77.0F, 1.0F});
  EXPECT_EQ(m.outputs[0].rejected, 0);
  EXPECT_EQ(m.outputs[0].unconstrained, 1);
  EXPECT_EQ(m.rows_out_of_range, 1);
  EXPECT_EQ(m.out_of_range, "S: 1 > 0");
}

TEST(Measure, AnUnknownRadiusIsUncertainNotRejected) {
  Evaluation e = by_hand({1}, 0.25);
  e.truth.outputs[0].radius[0] = std::numeric_limits<double>::infinity();
  const Measurement m = measured(e, {500.0F});
  EXPECT_EQ(m.outputs[0].rejected, 0);
  EXPECT_EQ(m.outputs[0].uncertain, 1);
}

/// The same output under a further level.
Evaluation with_tier(Evaluation e, const std::vector<double>& mid, const std::vector<double>& tau) {
  e.bound.tiers.push_back({Level::kT1, {{mid, tau}}});
  return e;
}

TEST(Tiers, AnElementMustLieInEverySet) {
  const Evaluation e = with_tier(by_hand({1, 1}, 0.25), {1.1, 1.1}, {0.05, 0.05});
  EXPECT_TRUE(accepted(e, 0, 0, encode(Format::kFp32, 1.12)));
  EXPECT_FALSE(accepted(e, 0, 0, encode(Format::kFp32, 1.0))) << "inside T0 only";
  EXPECT_FALSE(accepted(e, 0, 0, encode(Format::kFp32, 1.3))) << "outside both";
  const Evaluation beyond = with_tier(by_hand({1}, 0.25), {1.3}, {0.1});
  EXPECT_FALSE(accepted(beyond, 0, 0, encode(Format::kFp32, 1.35))) << "inside T1 only";
  const Measurement m = measured(e, {1.0F, 1.12F});
  EXPECT_EQ(m.outputs[0].rejected, 0) << "T0";
  ASSERT_EQ(m.outputs[0].tiers.size(), 1U);
  const TierMeasure& tier = m.outputs[0].tiers[0];
  EXPECT_EQ(tier.judged, 2);
  EXPECT_EQ(tier.rejected, 1);
  EXPECT_EQ(tier.worst.element, 0);
  EXPECT_NEAR(tier.worst.used, 2, 1e-5);
  EXPECT_EQ(m.outputs[0].rows[0].rejected, 1) << "rows count failures of any level";
  EXPECT_EQ(m.outputs[0].rows[1].rejected, 0);
}

TEST(Tiers, ALevelThatSaysNothingAboutAnElementRejectsNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const Evaluation e = with_tier(by_hand({1, 1}, 0.25), {5, 1}, {inf, 0.125});
  const Measurement m = measured(e, {1.0F, 1.0F});
  EXPECT_EQ(m.outputs[0].tiers[0].judged, 1);
  EXPECT_EQ(m.outputs[0].tiers[0].rejected, 0);
  EXPECT_TRUE(measured(with_tier(by_hand({1}, 0.25), {5}, {inf}), {1.0F}).outputs[0].tiers.empty());
  EXPECT_TRUE(measured(with_tier(by_hand({0}, 0.25, kZero), {5}, {0.1}), {0.0F}).outputs[0].tiers.empty()) << "a class";
}

TEST(Tiers, ACommonFactorShowsAsGainWithItsError) {
  std::vector<double> mid;
  std::vector<float> values;
  for (int i = 0; i < 400; ++i) {
    mid.push_back(i % 2 == 0 ? 1 + i * 1e-3 : -2 + i * 1e-3);
    values.push_back(static_cast<float>(mid.back() * (1 + 1e-4) + (i % 4 < 2 ? 1e-5 : -1e-5)));
  }
  const Evaluation e = with_tier(by_hand(mid, 1), mid, std::vector<double>(mid.size(), 1));
  const TierMeasure tier = measured(e, values).outputs[0].tiers[0];
  EXPECT_NEAR(tier.gain, 1e-4, 5 * tier.gain_error);
  EXPECT_GT(tier.gain_error, 1e-8);
  EXPECT_LT(tier.gain_error, 1e-6);
  EXPECT_NEAR(tier.gain_budget, 0.7, 0.2) << "tau is 1 on values between 1 and 2";
}

TEST(Vacuity, ATierThatRejectsZeroMakesACaseWorthwhile) {
  EXPECT_TRUE(is_vacuous(by_hand({1}, 1.5)));
  EXPECT_FALSE(is_vacuous(with_tier(by_hand({1}, 1.5), {1}, {0.1})));
}

}  // namespace
}  // namespace assay
