// Kernel arithmetic against MPFR: fused multiply-add, exp2, its cubic, log2, ln, tanh.
#include "kernels/numeric.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "oracle/format.h"

namespace assay {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// splitmix64.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t x = state += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class Mpfr {
 public:
  explicit Mpfr(mpfr_prec_t precision) { mpfr_init2(value_, precision); }
  ~Mpfr() { mpfr_clear(value_); }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

/// a * b + c, exact in 1,200 bits, rounded once.
float fma_by_mpfr(float a, float b, float c) {
  static Mpfr x(24), y(24), z(24), exact(1200);
  mpfr_set_flt(x, a, MPFR_RNDN);
  mpfr_set_flt(y, b, MPFR_RNDN);
  mpfr_set_flt(z, c, MPFR_RNDN);
  mpfr_fma(exact, x, y, z, MPFR_RNDN);
  return mpfr_get_flt(exact, MPFR_RNDN);
}

void expect_fma(float a, float b, float c) {
  const float wanted = fma_by_mpfr(a, b, c);
  const float got = fma_f32(a, b, c);
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got));
  } else {
    EXPECT_EQ(got, wanted) << a << " * " << b << " + " << c;
  }
}

TEST(FmaF32, RoundsOnceOnRandomBits) {
  std::uint64_t state = 1;
  for (int n = 0; n < 300'000; ++n) {
    const std::uint64_t r = next(state), t = next(state);
    expect_fma(from_bits(static_cast<std::uint32_t>(r)), from_bits(static_cast<std::uint32_t>(r >> 32)),
               from_bits(static_cast<std::uint32_t>(t)));
  }
}

TEST(FmaF32, RoundsOnceWhereTheProductLiesNearAMidpointOfTheSum) {
  // (1 + e)(1 - e) half an ulp of c = half an ulp less e^2: a hair that rounding to fp64 first would lose.
  std::uint64_t state = 2;
  int double_rounding_differs = 0;
  for (int n = 0; n < 100'000; ++n) {
    const std::uint64_t r = next(state);
    const float e = static_cast<float>(r & 0xfU) * 0x1p-23F;
    const float c = from_bits(0x3f800000U | (static_cast<std::uint32_t>(r >> 32) & 0x807fffffU));
    const float a = 1.0F + e;
    const float b = (1.0F - e) * ((r & 0x10U) != 0 ? 0x1p-24F : -0x1p-24F);
    expect_fma(a, b, c);
    const float naive = static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
    double_rounding_differs += naive != fma_by_mpfr(a, b, c);
  }
  EXPECT_GT(double_rounding_differs, 100) << "the inputs must be able to tell one rounding from two";
}

TEST(FmaF32, RoundsOnceAroundSubnormalResults) {
  std::uint64_t state = 3;
  for (int n = 0; n < 200'000; ++n) {
    const std::uint64_t r = next(state), t = next(state);
    const float a = from_bits(((static_cast<std::uint32_t>(r) % 40 + 40) << 23) |
                              (static_cast<std::uint32_t>(r >> 9) & 0x807fffffU));
    const float b =
        from_bits(((static_cast<std::uint32_t>(t) % 40 + 30) << 23) | (static_cast<std::uint32_t>(t >> 9) & 0x7fffffU));
    expect_fma(a, b, from_bits(static_cast<std::uint32_t>(t >> 40) & 0x80ffffU));
  }
}

TEST(FmaF32, FollowsIeeeForInfinitiesAndNan) {
  expect_fma(kInfinity, 0.0F, 1.0F);
  expect_fma(kInfinity, 2.0F, -kInfinity);
  expect_fma(kInfinity, -2.0F, 3.0F);
  expect_fma(2.0F, 3.0F, -kInfinity);
  expect_fma(0x1p100F, 0x1p100F, 1.0F);
  expect_fma(std::nanf(""), 1.0F, 1.0F);
}

/// Arguments over the whole range: every 60,013th code.
std::vector<float> all_over() {
  std::vector<float> xs;
  for (std::uint64_t code = 0; code < (std::uint64_t{1} << 32); code += 60'013)
    xs.push_back(from_bits(static_cast<std::uint32_t>(code)));
  return xs;
}

TEST(Exp2F32, IsWithinAHundredthOfHalfAnUlp) {
  std::vector<float> xs = all_over();
  for (int k = 0; k < 200'000; ++k) xs.push_back(-150.0F + static_cast<float>(k) * 1.5e-3F);  // -150 .. 150
  Mpfr x(24), y(100);
  for (const float argument : xs) {
    const float got = exp2_f32(argument);
    if (std::isnan(argument)) {
      ASSERT_TRUE(std::isnan(got));
      continue;
    }
    mpfr_set_flt(x, argument, MPFR_RNDN);
    mpfr_exp2(y, x, MPFR_RNDN);
    const float wanted = mpfr_get_flt(y, MPFR_RNDN);
    ASSERT_FALSE(std::isnan(got)) << argument;
    // ex2.approx.f32 promises 2 ulp from the correctly rounded result; this one is a rounded fp64 result.
    ASSERT_LE(ulp_distance(Format::kFp32, bits_of(got), bits_of(wanted)), 1) << argument;
    if (wanted == kInfinity) continue;
    const double exact = mpfr_get_d(y, MPFR_RNDN);
    ASSERT_LE(std::abs(static_cast<double>(got) - exact), 0.505 * ulp(Format::kFp32, exact)) << argument;
  }
}

TEST(Exp2F32, IsExactAtIntegersAndSpecialValues) {
  EXPECT_EQ(bits_of(exp2_f32(0.0F)), bits_of(1.0F));
  EXPECT_EQ(bits_of(exp2_f32(-0.0F)), bits_of(1.0F));
  EXPECT_EQ(exp2_f32(-kInfinity), 0.0F);
  EXPECT_EQ(exp2_f32(kInfinity), kInfinity);
  EXPECT_EQ(exp2_f32(128.0F), kInfinity);
  EXPECT_EQ(exp2_f32(-149.0F), 0x1p-149F);
  EXPECT_EQ(exp2_f32(-151.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp2_f32(std::nanf(""))));
  for (int n = -149; n <= 127; ++n) EXPECT_EQ(exp2_f32(static_cast<float>(n)), std::ldexp(1.0F, n));
}

template <class Function, class Reference>
void expect_logarithm(Function function, Reference reference) {
  std::vector<float> xs = all_over();
  for (std::uint32_t code = bits_of(0.5F); code < bits_of(2.0F); code += 127) xs.push_back(from_bits(code));
  for (std::uint32_t d = 0; d < 5000; ++d)
    xs.insert(xs.end(), {from_bits(bits_of(1.0F) + d), from_bits(bits_of(1.0F) - d)});
  Mpfr x(24), y(100);
  for (const float argument : xs) {
    const double got = static_cast<double>(function(argument));
    if (!(argument > 0)) {
      ASSERT_TRUE(argument == 0 ? got == -static_cast<double>(kInfinity) : std::isnan(got)) << argument;
      continue;
    }
    mpfr_set_flt(x, argument, MPFR_RNDN);
    reference(y, x, MPFR_RNDN);
    const double wanted = mpfr_get_d(y, MPFR_RNDN);
    if (std::isinf(wanted)) {
      ASSERT_EQ(got, wanted);
      continue;
    }
    // The promise of lg2.approx is 2^-22 relative, absolute in (1/2, 2); this one is a rounded fp64 result everywhere.
    ASSERT_LE(std::abs(got - wanted), 0x1.01p-24 * std::abs(wanted)) << argument;
  }
}

TEST(Log2F32, IsCorrectlyRoundedButForAHundredth) { expect_logarithm(log2_f32, mpfr_log2); }
TEST(LogF32, IsCorrectlyRoundedButForAHundredth) { expect_logarithm(log_f32, mpfr_log); }

/// Largest |cubic(x) / 2^x - 1| over every fp32 fraction from `low` to `low` + 1.
double largest_cubic_error(float low) {
  Mpfr x(24), y(60);
  double largest = 0;
  for (std::uint32_t code = bits_of(low); code < bits_of(low + 1.0F); code += 37) {
    mpfr_set_flt(x, from_bits(code), MPFR_RNDN);
    mpfr_exp2(y, x, MPFR_RNDN);
    largest = std::max(largest,
                       std::abs(static_cast<double>(exp2_cubic_f32(from_bits(code))) / mpfr_get_d(y, MPFR_RNDN) - 1));
  }
  return largest;
}

TEST(Exp2CubicF32, IsWithinItsStatedError) {
  double largest = 0;
  for (const float low : {1.0F, 3.0F, 100.0F}) largest = std::max(largest, largest_cubic_error(low));
  EXPECT_LE(largest, 8.57e-5);
  EXPECT_GE(largest, 8.55e-5) << "the statement in numeric.h is the measured maximum";
  Mpfr x(24), y(60);
  for (float argument = -126.0F; argument <= 0.0F; argument += 0x1p-10F) {
    mpfr_set_flt(x, argument, MPFR_RNDN);
    mpfr_exp2(y, x, MPFR_RNDN);
    ASSERT_NEAR(static_cast<double>(exp2_cubic_f32(argument)) / mpfr_get_d(y, MPFR_RNDN), 1, 9e-5) << argument;
  }
}

TEST(Exp2CubicF32, IsExactAtIntegersAndSpecialValues) {
  EXPECT_EQ(bits_of(exp2_cubic_f32(0.0F)), bits_of(1.0F));
  EXPECT_EQ(bits_of(exp2_cubic_f32(-0.0F)), bits_of(1.0F));
  EXPECT_EQ(exp2_cubic_f32(-kInfinity), 0.0F);
  EXPECT_EQ(exp2_cubic_f32(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp2_cubic_f32(std::nanf(""))));
  EXPECT_NEAR(exp2_cubic_f32(-1e-30F), 1.0F, 9e-5F);
  for (int n = -149; n <= 127; ++n) EXPECT_EQ(exp2_cubic_f32(static_cast<float>(n)), std::ldexp(1.0F, n));
}

TEST(TanhF32, IsCorrectlyRoundedButForAHundredth) {
  std::vector<float> xs = all_over();
  for (std::uint32_t code = bits_of(0x1p-14F); code < bits_of(10.0F); code += 997) xs.push_back(from_bits(code));
  for (std::uint32_t d = 0; d < 5000; ++d)  // where the formula changes
    xs.insert(xs.end(), {from_bits(bits_of(0.5F) + d), from_bits(bits_of(0.5F) - d)});
  Mpfr x(24), y(100);
  for (const float argument : xs) {
    const float got = tanh_f32(argument);
    if (std::isnan(argument)) {
      ASSERT_TRUE(std::isnan(got));
      continue;
    }
    mpfr_set_flt(x, argument, MPFR_RNDN);
    mpfr_tanh(y, x, MPFR_RNDN);
    const double exact = mpfr_get_d(y, MPFR_RNDN);
    // 2 ulp are declared; this one is a rounded fp64 result everywhere.
    ASSERT_LE(std::abs(static_cast<double>(got) - exact), 0.51 * ulp(Format::kFp32, exact)) << argument;
    ASSERT_EQ(bits_of(tanh_f32(-argument)), bits_of(-got)) << argument;
  }
  EXPECT_EQ(tanh_f32(kInfinity), 1.0F);
  EXPECT_EQ(tanh_f32(-kInfinity), -1.0F);
  EXPECT_EQ(bits_of(tanh_f32(-0.0F)), bits_of(-0.0F));
}

TEST(MaxKeepingNan, IsNanIfEitherIs) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(max_keeping_nan(nan, 1.0F)));
  EXPECT_TRUE(std::isnan(max_keeping_nan(1.0F, nan)));
  EXPECT_TRUE(std::isnan(max_keeping_nan(kInfinity, nan)));
  EXPECT_EQ(max_keeping_nan(1.0F, 2.0F), 2.0F);
  EXPECT_EQ(max_keeping_nan(2.0F, -kInfinity), 2.0F);
}

}  // namespace
}  // namespace assay
