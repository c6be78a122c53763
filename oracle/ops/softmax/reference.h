// One softmax row in balls: the certified answer before it is rounded to doubles.
#pragma once

#include <vector>

#include "oracle/ops/softmax/problem.h"
#include "oracle/real.h"

namespace assay {

/// Parallel to SoftmaxTruth; a ball is meaningful where the class set holds kNumber.
struct SoftmaxBalls {
  Classified classified;
  std::vector<Ball> y;     ///< [n]
  Ball lse;                ///< in the declared base
  std::vector<Ball> m, l;  ///< [steps]
};

/// The row at `precision` bits, doubled up to 1024 until every number has radius <= 2^-60 |midpoint|, or lies within
/// 2^-1000 of 0.
SoftmaxBalls softmax_balls(const SoftmaxProblem& problem, const SoftmaxRow& row, int precision);

}  // namespace assay
