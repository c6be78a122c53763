// exp64, exp2_64, log64 and tanh64 against MPFR, array against scalar, and the bits themselves.
#include "oracle/exp64.h"

#include <gtest/gtest.h>
#include <mpfr.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace assay {
namespace {

using Scalar = double (*)(double);
using Array = void (*)(const double*, double*, std::size_t);
using Mpfr = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// A uniform number of [low, high), by operations that are the same everywhere.
double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

// Neighbourhoods of k ln2/2 (where the reduction switches), of integers and halves, tiny numbers, and the whole range.
std::vector<double> exponential_inputs() {
  std::mt19937_64 random(1);
  std::vector<double> x = {0.0, -0.0, 5e-324, -5e-324, 0x1p-1022, 0x1p-54, -0x1p-54, 709.78, -708.4, -745.13, -745.2};
  for (int k = -2150; k <= 2050; ++k) {
    const double edge = k * (0.69314718055994530942 / 2);
    const double half = k * 0.5;
    for (const double e : {edge, half}) x.insert(x.end(), {e, std::nextafter(e, 1e9), std::nextafter(e, -1e9)});
    x.push_back(edge + uniform(random, -1e-9, 1e-9));
  }
  for (int n = 0; n < 40000; ++n) x.push_back(uniform(random, -760, 720));
  for (int n = 0; n < 40000; ++n) x.push_back(uniform(random, -1, 1));
  for (int n = 0; n < 20000; ++n) x.push_back(uniform(random, -1090, -1000));  // subnormal powers of two
  for (int n = 0; n < 10000; ++n) x.push_back(uniform(random, -746, -708));    // subnormal powers of e
  for (int n = 0; n < 10000; ++n) x.push_back(std::ldexp(uniform(random, -1, 1), -static_cast<int>(random() % 1000)));
  return x;
}

std::vector<double> logarithm_inputs() {
  std::mt19937_64 random(2);
  std::vector<double> x = {5e-324, 0x1p-1023, 0x1.fffffffffffffp-1023, 0x1p-1022, 0x1.fffffffffffffp1023};
  for (int k = -1074; k < 1024; ++k) {
    for (const double m : {1.0, 1.4142135623730951, 1.99999999}) {
      const double e = std::ldexp(m, k);
      x.insert(x.end(), {e, std::nextafter(e, 1e308), std::nextafter(e, 0.0)});
    }
  }
  for (int n = 0; n < 30000; ++n) x.push_back(uniform(random, 0.5, 2));
  for (int n = 0; n < 20000; ++n) x.push_back(1 + std::ldexp(uniform(random, -1, 1), -static_cast<int>(random() % 53)));
  for (int n = 0; n < 10000; ++n) x.push_back(uniform(random, 0.7070, 0.7072));
  for (int n = 0; n < 10000; ++n) x.push_back(uniform(random, 1.4141, 1.4143));
  for (int n = 0; n < 40000; ++n) x.push_back(std::bit_cast<double>(random() % (std::uint64_t{0x7ff} << 52)));
  std::erase(x, 0.0);
  return x;
}

// Largest relative error, in units of 2^-53, over the inputs whose true value is a normal number; elsewhere the result
// is checked against the bound with its absolute part.
double worst_error(const std::vector<double>& inputs, Scalar f, Mpfr exact, double relative, double absolute) {
  mpfr_t y;
  mpfr_t difference;
  mpfr_init2(y, 160);
  mpfr_init2(difference, 160);
  double worst = 0;
  for (const double x : inputs) {
    mpfr_set_d(y, x, MPFR_RNDN);
    exact(y, y, MPFR_RNDN);
    const double result = f(x);
    if (mpfr_cmp_d(y, 0x1.fffffffffffffp1023) > 0) {
      mpfr_div_ui(y, y, 2, MPFR_RNDN);
      EXPECT_TRUE(result == INFINITY || mpfr_cmp_d(y, 0x1.0000000000001p1023) < 0) << x;
      continue;
    }
    if (std::isinf(result)) {
      ADD_FAILURE() << "overflow at " << x;
      continue;
    }
    mpfr_sub_d(difference, y, result, MPFR_RNDN);
    const double error = std::fabs(mpfr_get_d(difference, MPFR_RNDU));
    const double value = std::fabs(mpfr_get_d(y, MPFR_RNDN));
    if (value < 0x1p-1022) {
      EXPECT_LE(error, relative * value + absolute) << x;
    } else {
      mpfr_div(difference, difference, y, MPFR_RNDN);
      const double here = std::fabs(mpfr_get_d(difference, MPFR_RNDU));
      EXPECT_LE(here, relative) << std::hexfloat << x;
      worst = std::max(worst, here);
    }
  }
  mpfr_clear(y);
  mpfr_clear(difference);
  return worst * 0x1p53;
}

void expect_array_equals_scalar(std::vector<double> x, Scalar f, Array array) {
  x.insert(x.end(), {NAN, INFINITY, -INFINITY, 0.0, -0.0, -1.0, 1e300, -1e300});
  for (const std::size_t drop : {0u, 1u, 2u, 3u, 5u}) {  // remainders of every vector width
    std::vector<double> y(x.size() - drop);
    array(x.data(), y.data(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(bits(y[i]), bits(f(x[i]))) << x[i];
    std::vector<double> in_place(x.begin(), x.end() - static_cast<std::ptrdiff_t>(drop));
    array(in_place.data(), in_place.data(), in_place.size());
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(bits(y[i]), bits(in_place[i])) << "in place, " << x[i];
  }
}

std::uint64_t hash(const std::vector<double>& x, Array f) {
  std::vector<double> y(x.size());
  f(x.data(), y.data(), x.size());
  return XXH64(y.data(), y.size() * sizeof(double), 0);
}

// Inputs from integers alone, so that they cannot differ between machines.
std::vector<double> fixed_inputs(double low, double high) {
  std::mt19937_64 random(99);
  std::vector<double> x;
  for (int n = 0; n < 100000; ++n) x.push_back(uniform(random, low, high));
  return x;
}

TEST(Exp64, StaysWithinItsProvenBounds) {
  const auto x = exponential_inputs();
  ASSERT_GT(x.size(), 100000u);
  const double e = worst_error(x, exp64, mpfr_exp, kExp64RelativeError, kExp64AbsoluteError);
  const double two = worst_error(x, exp2_64, mpfr_exp2, kExp64RelativeError, kExp64AbsoluteError);
  std::printf("largest error of %zu: exp %.3f, exp2 %.3f; proven 2 (units of 2^-53)\n", x.size(), e, two);
  EXPECT_GT(e, 1.0) << "an error this small means the measurement is broken";
  EXPECT_GT(two, 1.0);
}

TEST(Exp64, LogarithmStaysWithinItsProvenBound) {
  const auto x = logarithm_inputs();
  ASSERT_GT(x.size(), 100000u);
  const double e = worst_error(x, log64, mpfr_log, kLog64RelativeError, 0);
  std::printf("largest error of %zu: log %.3f; proven 2 (units of 2^-53)\n", x.size(), e);
  EXPECT_GT(e, 1.0) << "an error this small means the measurement is broken";
}

std::vector<double> hyperbolic_inputs() {
  std::mt19937_64 random(3);
  std::vector<double> x = {5e-324, -5e-324, 0x1p-1022, 0x1p-54, 0.173, std::nextafter(0.173, 0.0), -0.173, 18.7, 22.5, 1e308, -1e308};
  for (int n = 0; n < 40000; ++n) x.push_back(uniform(random, -0.36, 0.36));
  for (int n = 0; n < 40000; ++n) x.push_back(uniform(random, -25, 25));
  for (int n = 0; n < 20000; ++n) x.push_back(uniform(random, 0.1725, 0.1735));
  for (int n = 0; n < 10000; ++n) x.push_back(std::ldexp(uniform(random, -1, 1), -static_cast<int>(random() % 1000)));
  std::erase(x, 0.0);
  return x;
}

TEST(Exp64, HyperbolicTangentStaysWithinItsProvenBound) {
  const double e = worst_error(hyperbolic_inputs(), tanh64, mpfr_tanh, kTanh64RelativeError, 0x1p-1074);
  std::printf("largest error: tanh %.3f; proven 8 (units of 2^-53)\n", e);
  EXPECT_GT(e, 2.0) << "an error this small means the measurement is broken";
}

TEST(Exp64, ArraysGiveTheScalarBits) {
  expect_array_equals_scalar(exponential_inputs(), exp64, exp64);
  expect_array_equals_scalar(exponential_inputs(), exp2_64, exp2_64);
  expect_array_equals_scalar(logarithm_inputs(), log64, log64);
  expect_array_equals_scalar(hyperbolic_inputs(), tanh64, tanh64);
}

TEST(Exp64, SpecialValuesAreWhatTheHeaderSays) {
  constexpr std::uint64_t kNan = 0x7ff8000000000000;
  EXPECT_EQ(bits(exp64(0.0)), bits(1.0));
  EXPECT_EQ(bits(exp64(-0.0)), bits(1.0));
  EXPECT_EQ(bits(exp64(-INFINITY)), 0u);
  EXPECT_EQ(exp64(INFINITY), INFINITY);
  EXPECT_EQ(bits(exp64(-NAN)), kNan);
  EXPECT_EQ(bits(exp64(-745.2)), 0u);
  EXPECT_EQ(exp64(-745.13), 5e-324);
  EXPECT_EQ(exp64(709.79), INFINITY);
  EXPECT_LT(exp64(709.78), INFINITY);
  EXPECT_EQ(exp64(1.7e308), INFINITY);
  EXPECT_EQ(bits(exp64(-1.7e308)), 0u);
  for (int k = -1074; k < 1024; ++k) ASSERT_EQ(exp2_64(k), std::ldexp(1.0, k)) << k;
  EXPECT_EQ(bits(exp2_64(-1075)), 0u);
  EXPECT_EQ(exp2_64(1024), INFINITY);
  EXPECT_EQ(bits(exp2_64(-INFINITY)), 0u);
  EXPECT_EQ(exp2_64(INFINITY), INFINITY);
  EXPECT_EQ(bits(exp2_64(NAN)), kNan);
  EXPECT_EQ(bits(log64(1.0)), 0u);
  EXPECT_EQ(log64(0.0), -INFINITY);
  EXPECT_EQ(log64(-0.0), -INFINITY);
  EXPECT_EQ(log64(INFINITY), INFINITY);
  for (const double x : {-1.0, -5e-324, -double{INFINITY}, double{NAN}}) EXPECT_EQ(bits(log64(x)), kNan) << x;
  EXPECT_EQ(bits(tanh64(0.0)), bits(0.0));
  EXPECT_EQ(bits(tanh64(-0.0)), bits(-0.0));
  EXPECT_EQ(tanh64(INFINITY), 1.0);
  EXPECT_EQ(tanh64(-INFINITY), -1.0);
  EXPECT_EQ(bits(tanh64(-NAN)), kNan);
}

TEST(Exp64, BitsAreTheSameOnEveryCompilerAndLevel) {
  EXPECT_EQ(hash(fixed_inputs(-760, 720), exp64), 1248495090488026229u);
  EXPECT_EQ(hash(fixed_inputs(-1100, 1030), exp2_64), 12350860192434965615u);
  EXPECT_EQ(hash(fixed_inputs(0, 1e6), log64), 12759391870732018187u);
  EXPECT_EQ(hash(fixed_inputs(-3, 3), tanh64), 14621379840619661190u);
}

}  // namespace
}  // namespace assay
