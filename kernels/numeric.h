// fp32 arithmetic that kernels need beyond + - * /: fused multiply-add, exp2, log2, ln, tanh and a maximum that keeps
// NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace assay {

inline constexpr float kLog2e = 0x1.715476p+0F;  ///< fl32(log2 e)
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// a * b + c with one rounding to nearest even, subnormals kept.
///
/// a * b is exact in fp64 (48 bits). The fp64 sum is then made odd (its last bit set whenever it is inexact, by
/// stepping toward the exact value when the rounded one is even), so that rounding it to fp32, 29 bits shorter, is
/// correct.
inline float fma_f32(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);  // exact: fp64 has range to spare
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool finite = (bits & 0x7ff0000000000000U) != 0x7ff0000000000000U;
  if (finite && error != 0.0 && (bits & 1U) == 0U) bits = (error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1;
  return static_cast<float>(std::bit_cast<double>(bits));
}

/// 2^t in fp64 with relative error below 2^-31 for -151 <= t <= 129, and t clamped to that; 2^+-0 = 1 exactly, NaN
/// stays. No branches, so that loops over it vectorise.
///
/// t = n + r, |r| <= 1/2; Taylor series of 2^r to degree 8.
inline double exp2_wide(double t) {
  constexpr double kShift = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  t = t < -151.0 ? -151.0 : t;
  t = t > 129.0 ? 129.0 : t;
  const double shifted = t + kShift;
  const double r = t - (shifted - kShift);
  double p = 0x1.62c0223a5c824p-20;
  p = p * r + 0x1.ffcbfc588b0c7p-17;
  p = p * r + 0x1.430912f86c787p-13;
  p = p * r + 0x1.5d87fe78a6731p-10;
  p = p * r + 0x1.3b2ab6fba4e77p-7;
  p = p * r + 0x1.c6b08d704a0c0p-5;
  p = p * r + 0x1.ebfbdff82c58fp-3;
  p = p * r + 0x1.62e42fefa39efp-1;
  p = p * r + 1.0;
  const double scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52);
  return p * scale;
}

/// 2^x: within 2 ulp of the correctly rounded result, as ex2.approx.f32 promises (measured: 1). exp2(+-0) = 1 exactly,
/// subnormal results kept, NaN stays. What lies below -151 rounds to zero, above 129 to infinity.
inline float exp2_f32(float x) { return static_cast<float>(exp2_wide(static_cast<double>(x))); }

/// 2^x by a cubic in fp32, as FlashAttention-4 computes part of its exponentials: relative error at most 8.57e-5
/// (measured over all fractions; the polynomial's own maximum is 8.56e-5). exp2(+-0) = 1 exactly, subnormal results
/// kept, NaN stays.
///
/// x = n + r, 0 <= r <= 1. Coefficients: the cubic with p(0) = 1 whose largest |p(r) 2^-r - 1| on [0, 1] is smallest
/// (alternating at r = 0.100, 0.446, 0.829, 1), each rounded to fp32.
inline float exp2_cubic_f32(float x) {
  constexpr double kShift = 0x1.8p52;
  double t = static_cast<double>(x);
  t = t < -151.0 ? -151.0 : t;
  t = t > 129.0 ? 129.0 : t;
  double shifted = t + kShift;
  shifted = shifted - kShift > t ? shifted - 1.0 : shifted;  // floor
  const float r = static_cast<float>(t - (shifted - kShift));
  const float p = 1.0F + r * (0x1.63e658p-1F + r * (0x1.d2378ap-3F + r * 0x1.3baaa6p-4F));
  const double scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52);
  return static_cast<float>(static_cast<double>(p) * scale);
}

/// tanh(x): within 2 ulp of the correctly rounded result (measured over all x: off by at most 0.504 ulp).
/// tanh(+-0) = +-0, NaN stays, +-1 for large |x|.
///
/// |x| < 1/2: Lambert's continued fraction cut after 11, remainder below 2^-45. Otherwise 1 - 2 / (e^2|x| + 1): the
/// error 2^-31 of the exponential e = e^2|x| reaches the result times 2 e / (e^2 - 1) <= 0.86, relatively.
inline float tanh_f32(float x) {
  const double t = static_cast<double>(x);
  const double a = t < 0.0 ? -t : t;
  if (a < 0.5) {
    const double w = t * t;
    return static_cast<float>(t / (1.0 + w / (3.0 + w / (5.0 + w / (7.0 + w / (9.0 + w / 11.0))))));
  }
  const double magnitude = 1.0 - 2.0 / (exp2_wide(a * (2.0 * 0x1.71547652b82fep+0)) + 1.0);
  return static_cast<float>(t < 0.0 ? -magnitude : magnitude);
}

/// log2(x) in fp64 with relative error below 2^-40; -inf at 0, NaN below.
///
/// x = 2^e m, m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh(t), t = (m - 1) / (m + 1), |t| < 0.1716: nine terms.
inline double log2_wide(float x) {
  if (!(x > 0.0F))
    return x == 0.0F ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return static_cast<double>(x);
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  // Counting the exponent from sqrt(1/2) splits the binades there.
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;
  const auto exponent = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  const double t = (m - 1.0) / (m + 1.0);
  const double w = t * t;
  double p = 1.0 / 17.0;
  p = p * w + 1.0 / 15.0;
  p = p * w + 1.0 / 13.0;
  p = p * w + 1.0 / 11.0;
  p = p * w + 1.0 / 9.0;
  p = p * w + 1.0 / 7.0;
  p = p * w + 1.0 / 5.0;
  p = p * w + 1.0 / 3.0;
  p = p * w + 1.0;
  return static_cast<double>(exponent) + (2.0 * 0x1.71547652b82fep+0) * t * p;
}

/// log2(x) and ln(x), within the promise of lg2.approx.f32: 2^-22 relative, 2^-22 absolute for x in (1/2, 2).
inline float log2_f32(float x) { return static_cast<float>(log2_wide(x)); }
inline float log_f32(float x) { return static_cast<float>(log2_wide(x) * 0x1.62e42fefa39efp-1); }

/// The larger one; NaN if either is.
inline float max_keeping_nan(float a, float b) { return a > b || a != a ? a : b; }

}  // namespace assay
