// Functions that are coarser than kernels declare: planted faults of exponentials, tanh, logarithm and reciprocal.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/numeric.h"

namespace assay {

/// x = n + r, 0 <= r < 1, x clamped to [-151, 129]: 2^n and r.
struct SplitExponent {
  double scale, fraction;
};
inline SplitExponent split_exponent(float x) {
  constexpr double kShift = 0x1.8p52;
  double t = static_cast<double>(x);
  t = t < -151.0 ? -151.0 : t > 129.0 ? 129.0 : t;
  double shifted = t + kShift;
  shifted = shifted - kShift > t ? shifted - 1.0 : shifted;
  return {std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52), t - (shifted - kShift)};
}

/// 2^x by the cubic of exp2_cubic_f32 times 1 + 8.5e-5: minimax fits that leave 2^0 free look like that at 0.
inline float exp2_unanchored_f32(float x) { return exp2_cubic_f32(x) * (1.0F + 8.5e-5F); }

/// 2^x by the quadratic with p(0) = 1 and p(1) = 2 through 2^(1/2): relative error up to 1.8e-3.
inline float exp2_quadratic_f32(float x) {
  const auto [scale, r] = split_exponent(x);
  return static_cast<float>(scale * (1.0 + r * (0.6568542494923802 + r * 0.3431457505076198)));
}

/// 2^x for the fraction cut to 8 bits: too small by up to 2.7e-3.
inline float exp2_table_f32(float x) {
  const auto [scale, r] = split_exponent(x);
  const double cut = static_cast<double>(static_cast<std::int64_t>(r * 256.0)) / 256.0;
  return static_cast<float>(scale * exp2_wide(cut));
}

/// tanh t by its Pade approximant t (27 + t^2) / (27 + 9 t^2), which reaches 1 at t = 3: off by up to 0.024.
inline float tanh_rational_f32(float t) {
  if (t >= 3.0F) return 1.0F;
  if (t <= -3.0F) return -1.0F;
  return t * (27.0F + t * t) / (27.0F + 9.0F * t * t);
}

/// log2 x = e + (m - 1) (4/3 - (m - 1) / 3), m in [1, 2): off by up to 0.01.
inline float log2_quadratic_f32(float x) {
  if (!(x > 0.0F) || x == kInfinity) return log2_f32(x);
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  const double m = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U) - 1.0;
  return static_cast<float>(static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023) +
                            m * (4.0 / 3.0 - m / 3.0));
}

/// 1 / x from the line 48/17 - 32/17 d, d = x / 2^(e + 1) in [1/2, 1), and one Newton step: too small by up to 3.5e-3.
inline float reciprocal_one_step_f32(float x) {
  if (!(x >= 0x1p-126F) || x == kInfinity) return 1.0F / x;
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  const double d = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3fe0000000000000U);
  const double line = 48.0 / 17.0 - 32.0 / 17.0 * d, scaled = line * (2.0 - d * line);
  return static_cast<float>(scaled * (d / static_cast<double>(x)));
}

}  // namespace assay
