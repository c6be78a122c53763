// The acceptance set: a truth table over classes, signed zeros, subnormals, binade edges and neighbours.
#include "oracle/accept.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaNValue = std::numeric_limits<double>::quiet_NaN();

bool takes(Format format, ClassSet classes, double mid, double tau, double value, double radius = 0) {
  return accepts(acceptance(format, classes, mid, radius, tau), encode(format, value));
}

TEST(Accept, NanIsLegalOnlyWhereItsClassIs) {
  for (const Format format : {Format::kFp32, Format::kFp16, Format::kBf16, Format::kE4m3}) {
    EXPECT_FALSE(takes(format, kNumber, 1, 0.5, kNaNValue));
    EXPECT_FALSE(takes(format, kNumber, 1, kInf, kNaNValue)) << "an infinite tolerance is no licence for NaN";
    EXPECT_FALSE(takes(format, kZero | kPlusInf | kMinusInf, 0, 0, kNaNValue));
    EXPECT_TRUE(takes(format, kNan, 0, 0, kNaNValue));
    EXPECT_FALSE(takes(format, kNan, 0, 0, 0.0));
    EXPECT_TRUE(takes(format, kNan | kNumber, 1, 0, 1));
  }
}

TEST(Accept, EveryNanPayloadIsTheSame) {
  const Acceptance set = acceptance(Format::kBf16, kNan, 0, 0, 0);
  for (const std::uint64_t code : {0x7fc0U, 0xffc0U, 0x7f81U, 0xffffU}) EXPECT_TRUE(accepts(set, code)) << code;
}

TEST(Accept, InfinitiesAreLegalBySignOrByOverflow) {
  EXPECT_TRUE(takes(Format::kFp16, kPlusInf, 0, 0, kInf));
  EXPECT_FALSE(takes(Format::kFp16, kPlusInf, 0, 0, -kInf));
  EXPECT_TRUE(takes(Format::kFp16, kMinusInf, 0, 0, -kInf));
  EXPECT_FALSE(takes(Format::kFp16, kNumber, 65000, 500, kInf)) << "65504 is still nearest to 65500";
  EXPECT_TRUE(takes(Format::kFp16, kNumber, 65500, 20, kInf)) << "65520 rounds to infinity";
  EXPECT_TRUE(takes(Format::kFp16, kNumber, 65500, 20, 65504));
  EXPECT_TRUE(takes(Format::kFp16, kNumber, -65500, 20, -kInf));
  EXPECT_FALSE(takes(Format::kFp32, kNumber, 1e38, 1e37, kInf));
}

TEST(Accept, SignedZerosAreEqual) {
  for (const double zero : {0.0, -0.0}) {
    EXPECT_TRUE(takes(Format::kBf16, kZero, 0, 0, zero));
    EXPECT_TRUE(takes(Format::kBf16, kNumber, 0, 0, zero));
    EXPECT_TRUE(takes(Format::kBf16, kNumber, 1e-3, 1e-3, zero));
    EXPECT_FALSE(takes(Format::kBf16, kNumber, 1e-3, 1e-4, zero));
  }
  EXPECT_FALSE(takes(Format::kBf16, kZero, 0, 0, 0x1p-133)) << "the smallest subnormal is not zero";
}

TEST(Accept, SubnormalsAreNumbers) {
  const double least = info(Format::kFp16).min_subnormal;
  EXPECT_TRUE(takes(Format::kFp16, kNumber, least, 0, least));
  EXPECT_FALSE(takes(Format::kFp16, kNumber, least, 0, 0));
  EXPECT_FALSE(takes(Format::kFp16, kNumber, least, 0, 2 * least));
  EXPECT_TRUE(takes(Format::kFp16, kNumber, least * 0.5, 0, 0)) << "a tie goes to even";
  EXPECT_TRUE(takes(Format::kFp16, kNumber, least * 0.51, 0, least));
}

TEST(Accept, WithoutToleranceOnlyTheRoundedTruthPasses) {
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kFp32}) {
    const double u = ulp(format, 1.3);
    for (const double mid : {1.3, -1.3, 1.0, 2.0, -0.5}) {
      const std::uint64_t code = encode(format, mid);
      const Acceptance set = acceptance(format, kNumber, mid, 0, 0);
      EXPECT_TRUE(accepts(set, code));
      EXPECT_FALSE(accepts(set, next_up(format, code))) << mid;
      EXPECT_FALSE(accepts(set, next_down(format, code))) << mid;
    }
    EXPECT_TRUE(takes(format, kNumber, 1.3, u, 1.3 + u));
  }
}

TEST(Accept, AtABinadeEdgeTheSmallerGapCountsBelow) {
  // Around 1 the gaps of bf16 are 2^-7 above and 2^-8 below: half an ulp added to tau would let one code too many pass.
  EXPECT_TRUE(takes(Format::kBf16, kNumber, 1.0, 0x1.01p-9, 1 - 0x1p-8));
  EXPECT_FALSE(takes(Format::kBf16, kNumber, 1.0, 0x1.fep-10, 1 - 0x1p-8));
  EXPECT_FALSE(takes(Format::kBf16, kNumber, 1.0, 0x1.01p-9, 1 + 0x1p-7));
  EXPECT_TRUE(takes(Format::kBf16, kNumber, 1.0, 0x1.01p-8, 1 + 0x1p-7));
}

TEST(Accept, TheRadiusWidensTheSet) {
  EXPECT_FALSE(takes(Format::kFp32, kNumber, 1.0, 0, 1 + 0x1p-22));
  EXPECT_TRUE(takes(Format::kFp32, kNumber, 1.0, 0, 1 + 0x1p-22, 0x1p-22));
  EXPECT_TRUE(takes(Format::kFp32, kNumber, 1.0, 0, 1 - 0x1p-22, 0x1p-22));
  EXPECT_FALSE(takes(Format::kFp32, kNumber, 1.0, 0, 1 - 0x1p-21, 0x1p-22));
  EXPECT_TRUE(takes(Format::kFp32, kNumber, 1.0, 0, 1e30, kInf));
}

TEST(Accept, ToleranceUsedIsOneAtTheEdgeOfTheSet) {
  const Format format = Format::kBf16;
  for (const double mid : {0.7, 1.0, -3.1, 1e-39, 250.3}) {
    const double tau = std::abs(mid) * 0.03 + 1e-40;
    std::uint64_t code = encode(format, mid);
    const Acceptance set = acceptance(format, kNumber, mid, 0, tau);
    EXPECT_EQ(tolerance_used(format, kNumber, mid, 0, tau, code), 0);
    double last = 0;
    for (int step = 0; step < 40; ++step) {
      code = next_up(format, code);
      const double used = tolerance_used(format, kNumber, mid, 0, tau, code);
      EXPECT_GE(used, last);
      EXPECT_EQ(used <= 1, accepts(set, code)) << mid << " + " << step << ": " << used;
      last = used;
    }
  }
  EXPECT_EQ(tolerance_used(format, kNumber, 1, 0, 0.1, 0x7fc0), kInf);
  EXPECT_EQ(tolerance_used(format, kZero, 0, 0, 0.1, encode(format, 1)), kInf);
  // The largest finite number is legal where the set reaches below the point that overflows.
  EXPECT_EQ(tolerance_used(Format::kFp16, kNumber, 65525, 0, 10, encode(Format::kFp16, 65504)), 0.5);
  EXPECT_EQ(tolerance_used(Format::kFp16, kNumber, -65525, 0, 10, encode(Format::kFp16, -65504)), 0.5);
  EXPECT_EQ(tolerance_used(Format::kFp16, kNumber, 65515, 0, 10, encode(Format::kFp16, kInf)), 0.5);
}

}  // namespace
}  // namespace assay
