// Pairs of output and reference.
#include "failure_catalog/judges/compared.h"

#include <cmath>
#include <limits>

namespace assay {

std::optional<double> reference_value(const OutputTruth& truth, std::size_t i, Format reference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (truth.classes[i]) {
    case kNumber:
      if (!std::isfinite(truth.radius[i])) return std::nullopt;
      return round_to(reference, truth.mid[i]);
    case kZero: return 0.0;
    case kPlusInf: return kInfinity;
    case kMinusInf: return -kInfinity;
    case kNan: return std::numeric_limits<double>::quiet_NaN();
    default: return std::nullopt;
  }
}

std::vector<Compared> compared(const OutputTruth& truth, const Tensor& output, Format reference) {
  std::vector<Compared> pairs;
  const Format format = truth.layout.format;
  for (std::size_t i = 0; i < truth.element.size(); ++i)
    if (const std::optional<double> r = reference_value(truth, i, reference))
      pairs.push_back({decode(format, load_code(output.bytes.data(), format, truth.element[i])), *r});
  return pairs;
}

bool is_lse(const OutputTruth& truth) { return truth.layout.role == "lse"; }

double difference(const Compared& pair) { return pair.y == pair.r ? 0.0 : std::abs(pair.y - pair.r); }

}  // namespace assay
