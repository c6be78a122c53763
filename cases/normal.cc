// Standard normal numbers by inverting the distribution function with rational approximations.
#include <array>
#include <bit>
#include <cmath>

#include "cases/random.h"
#include "oracle/exp64.h"
#include "oracle/simd.h"

namespace assay {
namespace {

// M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37 (1988),
// routine PPND16, relative error about 1e-16. Coefficients of ascending powers; denominators start with 1.
using Coefficients = std::array<double, 8>;
constexpr Coefficients kCentreTop{3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                  1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr Coefficients kCentreBottom{1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
constexpr Coefficients kMiddleTop{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kMiddleBottom{1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
constexpr Coefficients kTailTop{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients kTailBottom{1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};

[[gnu::always_inline]] inline double polynomial(const Coefficients& c, double x) {
  double sum = c[7];
  for (std::size_t i = 7; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

[[gnu::always_inline]] inline double ratio(const Coefficients& top, const Coefficients& bottom, double x) {
  return polynomial(top, x) / polynomial(bottom, x);
}

// Tail probability (m + 1/2) 2^-53 with m in [0, 2^52), exact; the lowest bit gives the sign. m is converted by filling
// the fraction of 2^52 with it.
[[gnu::always_inline]] inline double tail_of(std::uint64_t bits) {
  return (std::bit_cast<double>(bits >> 12 | std::uint64_t{0x433} << 52) - 0x1p52 + 0.5) * 0x1p-53;
}

[[gnu::always_inline]] inline double with_sign(double magnitude, std::uint64_t bits) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) ^ bits << 63);
}

constexpr double kCentre = 0.425;

[[gnu::always_inline]] inline double centre(double q) { return q * ratio(kCentreTop, kCentreBottom, 0.180625 - q * q); }

double outside_centre(double tail) {
  const double r = std::sqrt(-log64(tail));
  return r <= 5.0 ? ratio(kMiddleTop, kMiddleBottom, r - 1.6) : ratio(kTailTop, kTailBottom, r - 5.0);
}

/// The centre's formula everywhere, also where it does not hold.
ASSAY_HOT void centres(std::uint64_t origin, double* out, std::size_t n) {
  ASSAY_VECTORIZE
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = mix64(origin + kGolden * (i + 1));
    out[i] = with_sign(centre(0.5 - tail_of(bits)), bits);
  }
}

}  // namespace

double unit_normal(std::uint64_t bits) {
  const double tail = tail_of(bits), q = 0.5 - tail;
  return with_sign(q <= kCentre ? centre(q) : outside_centre(tail), bits);
}

void unit_normals(const Stream& stream, std::span<double> out) {
  centres(stream.origin, out.data(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t bits = stream.bits(static_cast<std::int64_t>(i));
    if (const double tail = tail_of(bits); !(0.5 - tail <= kCentre)) out[i] = with_sign(outside_centre(tail), bits);
  }
}

}  // namespace assay
