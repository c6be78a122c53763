// Pairs of output and reference as the tests of other projects compare them.
#pragma once

#include <optional>
#include <vector>

#include "failure_catalog/judges/judge.h"
#include "oracle/truth.h"

namespace assay {

/// The one true value of judged element i, rounded to the reference's format; nothing where mathematics leaves a
/// choice, or the radius is unknown.
std::optional<double> reference_value(const OutputTruth& truth, std::size_t i, Format reference);

struct Compared {
  double y = 0, r = 0;  ///< the output's value, the reference's
};
/// The judged elements of one output that have one true value.
std::vector<Compared> compared(const OutputTruth& truth, const Tensor& output, Format reference);

/// The tests of most projects look at the attention output alone.
bool is_lse(const OutputTruth& truth);

/// |y - r|, which is 0 for equal infinities; NaN for NaN, +inf for a wrong infinity.
double difference(const Compared& pair);

}  // namespace assay
