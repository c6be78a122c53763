// Approximations by exponent and significand.
#include "failure_catalog/function_error/approximations.h"

#include <cmath>

#include "oracle/exp64.h"

namespace assay {
namespace {

/// y = n + r.
double fraction_of(double y, double& power) {
  const double n = std::floor(y);
  power = exp2_64(n);
  return y - n;
}

/// x = 2^e m, 1 <= m < 2.
double significand(double x, int& exponent) {
  const double half = std::frexp(x, &exponent);
  --exponent;
  return 2 * half;
}

}  // namespace

double exp2_by_cubic(double y) {
  double power = 1;
  const double r = fraction_of(y, power);
  return power * (1 + r * (0x1.63e658p-1 + r * (0x1.d2378ap-3 + r * 0x1.3baaa6p-4)));
}

double exp2_by_quadratic(double y) {
  double power = 1;
  const double r = fraction_of(y, power), half = std::sqrt(2.0);
  // 1 + b r + c r^2 with b + c = 1 and b / 2 + c / 4 = sqrt(2) - 1.
  const double b = 4 * half - 5;
  return power * (1 + r * (b + r * (1 - b)));
}

double exp2_by_table(double y, int bits) {
  double power = 1;
  const double r = fraction_of(y, power), entries = exp2_64(bits);
  return power * exp2_64(std::floor(r * entries) / entries);
}

double tanh_by_fraction(double t) {
  if (std::abs(t) >= 3) return t > 0 ? 1 : -1;
  return t * (27 + t * t) / (27 + 9 * t * t);
}

double log2_by_quadratic(double x) {
  int e = 0;
  const double m = significand(x, e) - 1;
  return e + m * (4.0 / 3 - m / 3);
}

double log2_by_line(double x) {
  int e = 0;
  const double m = significand(x, e) - 1;
  return e + m;
}

double reciprocal_by_steps(double x, int steps) {
  int e = 0;
  const double d = significand(x, e) / 2;
  double r = 48.0 / 17 - 32.0 / 17 * d;
  for (int n = 0; n < steps; ++n) r *= 2 - d * r;
  return r * exp2_64(-(e + 1));
}

}  // namespace assay
