// exp64, exp2_64, log64 and tanh64 from + - * / and bit operations, with the proofs of their bounds (of exp64: in
// exp64_core.h).
#include "oracle/exp64.h"

#include "oracle/exp64_core.h"

namespace assay {
namespace {

using namespace exp64_detail;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x = k + f exactly, |f| <= 1/2, r = f ln 2: u/4 for the rounding, 1/2 * 2^-55.2 < 0.11 u for the constant. Total 1.94
// u.
[[gnu::always_inline]] inline double exp2_core(double x) {
  const double low = select(x < -1500.0, -1500.0, x);
  const double c = select(low > 1500.0, 1500.0, low);
  const double t = c + kRoundMagic;
  const double y = scale_by(exp_reduced((c - (t - kRoundMagic)) * kLn2), t);
  return select(x != x, kNan, y);
}

// x = 2^k (1 + f) with 1 + f in [0.70710, 1.41422]; f is exact. With s = f / (2 + f), |s| <= 0.17158, z = s^2 <=
// 0.02944:
//   log(1 + f) = 2 atanh s = f - (h - s (h + R)),  h = f^2 / 2,  R = 2/3 z + 2/5 z^2 + ... (cut off after z^10, < 2^-60
//   of f)
// and log x = k ln 2 + log(1 + f) is summed as H + (L - (h - (T + k kLn2Low))), T = s (h + R), where H + L = k kLn2High
// + f exactly (Fast2Sum: the first term is exact, and larger than f or zero). Rounding: h: u relative. s: 2u. z: 5u.
// R: 8.2u (its series in z: 2.2u). At the worst f = 0.4142: h = 0.0858, R = 0.0200, h + R = 0.1058 with error 0.086u +
// 0.164u + 0.0625u = 0.312u, 2.95u relative; T = 0.0182 within (2.95 + 2 + 1) u relative.
//   k = 0 (L = 0, T + 0 exact), relative to f: h 0.207u, T 0.26u, the difference h - T 0.163u: 0.63u; |log(1 + f)| >=
//   0.8367 f:
//     0.76u. At f = -0.2929: 0.146u + 0.26u + 0.183u over 1.183: 0.50u. Smaller |f| makes each smaller. The last sum:
//     u. Total 1.76 u.
//   k != 0, absolute: h 0.086u, T 0.108u, T + k kLn2Low 0.016u (k kLn2Low < 2^-33), h - () 0.0625u, L - () 0.0625u:
//   0.335u.
//     |log x| >= 0.3465. Below 0.5: 0.335u / 0.3465 + the last sum's (u/4) / 0.3465 = 1.69 u; from 0.5 on: 0.67u + u.
// Both < 2u.
[[gnu::always_inline]] inline double log_core(double x) {
  const bool tiny = x < 0x1p-1022;
  const double y = select(tiny, x * 0x1p54, x);
  constexpr std::uint64_t kHalfRoot = std::uint64_t{0x3fe6a09e} << 32;  // 0.70710659, just below sqrt(1/2)
  constexpr std::uint64_t kOne = std::uint64_t{0x3ff} << 52;
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t shifted = bits_of(y) + (kOne - kHalfRoot);
  // The exponent field as a number, by way of the low bits of 2^52.
  const double field = from_bits((shifted >> 52) | (std::uint64_t{0x433} << 52)) - 0x1p52;
  const double k = field - select(tiny, 1023.0 + 54.0, 1023.0);
  const double f = from_bits((shifted & kFraction) + kHalfRoot) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  const double h = 0.5 * f * f;
  const double t = s * (h + p * z);
  const double a = k * kLn2High;
  const double high = a + f;
  const double rest = f - (high - a);
  const double value = high + (rest - (h - (t + k * kLn2Low)));
  const double above_zero = select(x == kInfinity, kInfinity, value);
  const double not_below = select(x == 0.0, -kInfinity, above_zero);
  return select(x >= 0.0, not_below, kNan);
}

// tanh x = (1 - e) / (1 + e) with e = exp(-2|x|) = 1 + m, so also -m / (2 + m).
//   2|x| <= 0.3465 (then exp_core's k is 0 and r = -2|x| exactly): m = expm1_reduced(r). Its sum r + r^2 q has error 0.29u at
//     |r| = 0.3466, shrinking like r^2, and the rounding u |m|; |m| >= 0.8466 |r|: at most 0.29u / 0.2929 + u = 2u relative. 2 + m
//     lies in [1.7, 2] and takes 2u |m| + u: 0.94u relative. With the division 4u.
//   else: e <= 0.7072 within 2u. 1 - e is exact for e >= 1/2: 2u e / (1 - e) <= 4.83u; below, 2u e + u/2 over 1 - e: 3u. 1 + e takes
//     2u e + u over 1 + e: 1.42u. With the division 7.3u.
[[gnu::always_inline]] inline double tanh_core(double x) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const double a = from_bits(bits_of(x) & ~kSign);
  const double m = expm1_reduced(select(a < 0.173, -2 * a, 0.0));
  const double e = exp_core(-2 * a);
  const double y = select(a < 0.173, -m / (2.0 + m), (1.0 - e) / (1.0 + e));
  return select(x != x, kNan, from_bits((bits_of(y) & ~kSign) | (bits_of(x) & kSign)));
}

}  // namespace

double exp64(double x) { return exp_core(x); }
double exp2_64(double x) { return exp2_core(x); }
double log64(double x) { return log_core(x); }
double tanh64(double x) { return tanh_core(x); }

ASSAY_HOT void exp64(const double* x, double* y, std::size_t n) {
  std::size_t i = 0;
  for (; i + kVec <= n; i += kVec) store(y + i, exp_core(load(x + i)));
  for (; i < n; ++i) y[i] = exp_core(x[i]);
}

ASSAY_HOT void exp2_64(const double* x, double* y, std::size_t n) {
  ASSAY_VECTORIZE
  for (std::size_t i = 0; i < n; ++i) y[i] = exp2_core(x[i]);
}

ASSAY_HOT void log64(const double* x, double* y, std::size_t n) {
  ASSAY_VECTORIZE
  for (std::size_t i = 0; i < n; ++i) y[i] = log_core(x[i]);
}

ASSAY_HOT void tanh64(const double* x, double* y, std::size_t n) {
  ASSAY_VECTORIZE
  for (std::size_t i = 0; i < n; ++i) y[i] = tanh_core(x[i]);
}

}  // namespace assay
