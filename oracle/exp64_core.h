// e^x from + - * and bit operations, for one double or four: the loops of exp64.cc and those that weights go through.
#pragma once

#include <limits>

#include "oracle/vec.h"

// Throughout, u = 2^-53: one rounding to nearest has relative error <= u, and absolute error <= half the spacing of the
// result's binade (u/2 in [1/2, 1), u/4 in [1/4, 1/2), ...). Products of two errors are below 2^-100 and left out;
// every sum below leaves more room than that.

namespace assay::exp64_detail {

// ln 2 = kLn2High + kLn2Low + 2^-103: kLn2High has 42 significant bits (a multiple of 2^-42), so its product with an
// integer of 11 bits is exact.
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1;
inline constexpr double kLn2Low = 0x1.ef35793c76730p-45;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;  // ln 2 - 2^-55.2
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kRoundMagic =
    0x1.8p52;  // adding it rounds |x| < 2^51 to an integer, which then fills the low bits

// e^r for |r| <= 0.34658 (ln 2 / 2 with room for the rounding of x log2 e).
//
// Method: 1 + (r + r^2 q(r)), q the Taylor series up to r^11/13!, summed as A(r^2) + r B(r^2). Cut off: r^14/14! < 0.04
// u. Rounding: A = 1/2 + r^2 A1 with r^2 <= 0.1202 and A1 <= 0.0419, known to 5u: error <= 0.03u + u/2. r B <= 0.0581,
// B known to 2.1u: error <= 0.19u. Their sum q, in [0.44, 0.57]: u/2 more, together 1.22u. r^2 q: error <= 0.1202
// * 1.22u
// + 2u * 0.1202 * 0.564 <= 0.29u. r + r^2 q lies below 0.4143 in magnitude: u/4 more. The last sum: u for r > 0, where
// the result is >= 1; u/2 for r < 0, where it is >= 0.7071.
//   r > 0: (1 + 0.25 + 0.29 + 0.04) u <= 1.58 u,   r < 0: (0.5 + 0.25 + 0.29 + 0.04) u / 0.7071 <= 1.53 u, both
//   relative.
template <class T>
[[gnu::always_inline]] inline T expm1_reduced(const T& r) {
  const T z = r * r;
  T a = 1.0 / 479001600 * z + 1.0 / 3628800;
  a = a * z + 1.0 / 40320;
  a = a * z + 1.0 / 720;
  a = a * z + 1.0 / 24;
  a = a * z + 0.5;
  T b = 1.0 / 6227020800 * z + 1.0 / 39916800;
  b = b * z + 1.0 / 362880;
  b = b * z + 1.0 / 5040;
  b = b * z + 1.0 / 120;
  b = b * z + 1.0 / 6;
  return r + z * (a + r * b);
}
template <class T>
[[gnu::always_inline]] inline T exp_reduced(const T& r) {
  return 1.0 + expm1_reduced(r);
}

// p 2^k, where t = kRoundMagic + k and |k| < 2048. Two factors, of halves of k: the first product is exact, so a
// subnormal result is rounded once (error <= 2^-1075), and overflow gives infinity.
template <class T>
[[gnu::always_inline]] inline T scale_by(const T& p, const T& t) {
  const auto k = bits_of(t) - bits_of(kRoundMagic) + 4096;  // positive, so that a logical shift halves it
  const auto first = k >> 1;
  const auto second = k - first;
  return p * from_bits((first - 2048 + 1023) << 52) * from_bits((second - 2048 + 1023) << 52);
}

// x = k ln 2 + r. x - k kLn2High is exact: for k != 0, |x| >= 1/4, so both terms and their difference, below 1/2, are
// multiples of 2^-54. k kLn2Low is below 2^-33 and rounded within 2^-86. So r has the one rounding of the subtraction,
// u/4, which is also its relative effect on e^r. Total: 1.58 u + 0.25 u + 2^-85 < 2 u.
template <class T>
[[gnu::always_inline]] inline T exp_core(const T& x) {
  // e^-1000 is zero, e^1000 infinite, and k stays within 11 bits.
  const T low = select(x < -1000.0, T{} - 1000.0, x);
  const T c = select(low > 1000.0, T{} + 1000.0, low);
  const T t = c * kLog2E + kRoundMagic;
  const T k = t - kRoundMagic;
  const T r = (c - k * kLn2High) - k * kLn2Low;
  const T y = scale_by(exp_reduced(r), t);
  return select(x != x, T{} + std::numeric_limits<double>::quiet_NaN(), y);
}

// exp_core's bits for -600 <= x <= 700, where the result is normal and 2^k is one factor; e^-600 and e^700 beyond,
// e^-600 for NaN.
template <class T>
[[gnu::always_inline]] inline T exp_of_weight(const T& x) {
  const T low = select(x > -600.0, x, T{} - 600.0);
  const T c = select(low < 700.0, low, T{} + 700.0);
  const T t = c * kLog2E + kRoundMagic;
  const T k = t - kRoundMagic;
  const T r = (c - k * kLn2High) - k * kLn2Low;
  return from_bits(bits_of(exp_reduced(r)) + (bits_of(t) << 52));
}

}  // namespace assay::exp64_detail
