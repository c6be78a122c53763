// The acceptance set, with outward rounding and boundaries between neighbouring codes.
#include "oracle/accept.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The next larger double. Of a finite number away from zero its bits say so: one more in magnitude, or one less.
double above(double x) {
  if (x == 0) return std::numeric_limits<double>::denorm_min();
  if (!std::isfinite(x)) return x == -kInf ? std::numeric_limits<double>::lowest() : x;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return std::bit_cast<double>(x > 0 ? bits + 1 : bits - 1);
}
double below(double x) { return -above(-x); }

/// The value where rounding changes from `code` to its neighbour on the side of `mid`; beyond the largest finite number the
/// spacing of its binade continues.
double boundary(Format format, std::uint64_t code, double mid) {
  const double value = decode(format, code);
  const bool upward = value > mid;  // the neighbour towards mid lies below
  const double neighbour = decode(format, upward ? next_down(format, code) : next_up(format, code));
  if (std::isinf(value) || std::isinf(neighbour)) {
    const double largest = info(format).max_finite, last = largest + ulp(format, largest) / 2;
    return value > 0 ? last : -last;
  }
  return value / 2 + neighbour / 2;
}

}  // namespace

Acceptance acceptance(Format format, ClassSet classes, double mid, double radius, double tau) {
  const double reach = above(tau + radius);
  return {format, classes, tau < kInf && radius < kInf ? below(mid - reach) : -kInf,
          tau < kInf && radius < kInf ? above(mid + reach) : kInf};
}

bool accepts(const Acceptance& set, std::uint64_t code) {
  if (is_nan(set.format, code)) return (set.classes & kNan) != 0;
  const double value = decode(set.format, code);
  if (value == kInf && (set.classes & kPlusInf)) return true;
  if (value == -kInf && (set.classes & kMinusInf)) return true;
  if (value == 0 && (set.classes & kZero)) return true;
  if (!(set.classes & kNumber)) return false;
  return round_to(set.format, set.low) <= value && value <= round_to(set.format, set.high);
}

double tolerance_used(Format format, ClassSet classes, double mid, double radius, double tau, std::uint64_t code) {
  if ((classes & kNumber) != 0 && !is_nan(format, code) && code == encode(format, mid)) return 0;
  if (accepts(acceptance(format, classes, mid, radius, 0), code)) return 0;
  if (is_nan(format, code) || !(classes & kNumber)) return kInf;
  const double distance = std::abs(boundary(format, code, mid) - mid) - radius;
  if (distance <= 0) return 0;
  return tau > 0 ? distance / tau : kInf;
}

}  // namespace assay
