// The acceptance set, with outward rounding and boundaries between neighbouring codes.
#include "oracle/accept.h"

#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double below(double x) { return decode(Format::kFp64, next_down(Format::kFp64, encode(Format::kFp64, x))); }
double above(double x) { return decode(Format::kFp64, next_up(Format::kFp64, encode(Format::kFp64, x))); }

/// The value where rounding changes from `code` to its neighbour on the side of `mid`; beyond the largest finite number the
/// spacing of its binade continues.
double boundary(Format format, std::uint64_t code, double mid) {
  const double value = decode(format, code);
  const bool upward = value > mid;  // the neighbour towards mid lies below
  const double largest = info(format).max_finite;
  if (std::isinf(value)) {
    const double half = ulp(format, largest) / 2;
    return upward ? largest + half : -largest - half;
  }
  const double neighbour = decode(format, upward ? next_down(format, code) : next_up(format, code));
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
  if (accepts(acceptance(format, classes, mid, radius, 0), code)) return 0;
  if (is_nan(format, code) || !(classes & kNumber)) return kInf;
  const double distance = std::abs(boundary(format, code, mid) - mid) - radius;
  if (distance <= 0) return 0;
  return tau > 0 ? distance / tau : kInf;
}

}  // namespace assay
