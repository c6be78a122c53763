// The error of a row sum in a declared tree: roundings counted on the true partial sums.
#pragma once

#include <span>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/tile_walk.h"

namespace assay {

/// Relative error of one split's row sum of the positive weights p (in each tile's own unit), for a declared tree; for
/// an unknown one, of any order. Every rounding costs u times its result; results are the exact partial sums, up to the
/// slack of the caller.
double row_sum_error(const SplitWalk& split, std::span<const std::int32_t> keys, std::span<const double> p,
                     const Arithmetic& arithmetic);

}  // namespace assay
