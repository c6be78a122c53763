// One attention row in balls: the certified answer before it is rounded to doubles.
#pragma once

#include <vector>

#include "oracle/ops/attention/row_truth.h"
#include "oracle/real.h"

namespace assay {

struct RowBalls {
  RowFacts facts;
  std::vector<Ball> o;              ///< [dv]; meaningful where o_classes has kNumber
  std::vector<ClassSet> o_classes;  ///< [dv]
  Ball lse;                         ///< in the declared base
  ClassSet lse_classes = kNumber;
  Ball l;  ///< sum of the weights relative to the largest; 0 where no weights are defined
};

/// The row at `precision` bits, by the class rules of row_truth.h.
RowBalls row_balls(const AttentionProblem& problem, const AttentionRow& row, int precision);

inline constexpr int kLargestPrecision = 1024;

/// `row_balls`, with the precision doubled up to kLargestPrecision until l and every number have radius <= 2^-60
/// |midpoint|, or midpoint 0 (then l bounds the radius by about 2^-60 max |v|). A sum that cancels exactly may never
/// get there; its ball is then as small as 1024 bits make it.
RowBalls resolved_row_balls(const AttentionProblem& problem, const AttentionRow& row, int precision);

}  // namespace assay
