// |y - r| <= atol + rtol |r|, element by element.
#include "failure_catalog/judges/allclose.h"

#include <cmath>
#include <limits>
#include <optional>

namespace assay {
namespace {

/// The one value of the element, as an fp32 reference would hold it; nothing where mathematics leaves a choice.
std::optional<double> reference_value(const OutputTruth& truth, std::size_t i) {
  switch (truth.classes[i]) {
    case kNumber:
      if (!std::isfinite(truth.radius[i])) return std::nullopt;
      return round_to(Format::kFp32, truth.mid[i]);
    case kZero: return 0.0;
    case kPlusInf: return std::numeric_limits<double>::infinity();
    case kMinusInf: return -std::numeric_limits<double>::infinity();
    case kNan: return std::numeric_limits<double>::quiet_NaN();
    default: return std::nullopt;
  }
}

/// |y - r| / (atol + rtol |r|), 0 for equal values (infinities too), +inf where the quotient has no value.
double part_of_tolerance(double y, double r, double atol, double rtol) {
  if (y == r) return 0;
  const double part = std::abs(y - r) / (atol + rtol * std::abs(r));
  return std::isfinite(r) && std::isfinite(y) ? part : std::numeric_limits<double>::infinity();
}

}  // namespace

Allclose allclose(const OutputTruth& truth, const Tensor& output, double atol, double rtol) {
  Allclose result;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    const std::optional<double> r = reference_value(truth, i);
    if (!r) {
      ++result.left_out;
      continue;
    }
    const double y = decode(truth.layout.format, load_code(output.bytes.data(), truth.layout.format, truth.element[i]));
    const double part = part_of_tolerance(y, *r, atol, rtol);
    ++result.compared;
    result.outside += !(part <= 1);
    if (result.worst >= 0 && part <= result.worst_part) continue;
    result.worst = static_cast<std::int64_t>(i);
    result.worst_value = y;
    result.worst_reference = *r;
    result.worst_part = part;
  }
  return result;
}

}  // namespace assay
