// The rule of numpy.allclose and torch.allclose, as projects apply it to kernels: for comparison, never for a verdict.
#pragma once

#include <cstdint>

#include "failure_catalog/judges/judge.h"
#include "oracle/truth.h"

namespace assay {

/// Outcome on the judged elements of one output. An element is outside if |y - r| <= atol + rtol |r| is false, where y
/// is the output's value and r the true value rounded to the reference's format: the best reference such a test can
/// have. Equal infinities are close; NaN is close to nothing (equal_nan = false, the default of both libraries).
struct Allclose {
  std::int64_t compared = 0, outside = 0;
  std::int64_t left_out = 0;  ///< elements without one true value: the radius is unknown, or several classes are true
  std::int64_t worst = -1;    ///< index into the arrays of OutputTruth; -1 if nothing was compared
  double worst_value = 0, worst_reference = 0;
  double worst_part = 0;  ///< |y - r| / (atol + rtol |r|); above 1 is outside, +inf for NaN or a wrong infinity
  bool passes() const { return outside == 0; }
};

/// `output` has the truth's layout; atol and rtol are not negative.
Allclose allclose(const OutputTruth& truth, const Tensor& output, double atol, double rtol,
                  Format reference = Format::kFp32);

Opinion opinion_of(const Allclose& rule, std::string_view role);

}  // namespace assay
