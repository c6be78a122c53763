// One row in fp64: scores, weights, output and the proven error of each; what fast.cc computes and budget.cc bounds from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/operands.h"
#include "oracle/ops/attention/row_truth.h"

namespace assay {

/// Scratch and results of one row. Everything in natural-log units. Arrays are parallel to `keys`.
struct RowAnalysis {
  AttentionRow row;
  const HeadOperands* operands = nullptr;
  double scale = 1;
  bool uniform = false;             ///< an empty row under EmptyOutput::kMean: equal weights over all keys
  std::vector<std::int32_t> keys;   ///< keys with a finite logit, ascending; the set of the softmax
  std::vector<double> score;        ///< s_j = q.k_j
  std::vector<double> magnitude;    ///< sum |q_c k_jc|, rounded up
  std::vector<double> bias;         ///< additive mask value
  std::vector<double> depth;        ///< D_j = x_max - x_j >= 0 (computed)
  std::vector<double> p;            ///< normalised weights
  std::vector<double> eta;          ///< proven error of the computed log-weight, fp64 only
  double operand_max = 0;           ///< largest finite |q| of the row plus largest |k| of the head
  double score_hull = 0;            ///< largest sum |q_c k_jc| over all admissible keys, also those of x = -inf by their bias
  double max_logit = 0;             ///< x of the largest logit
  double sum = 0;                   ///< L = sum exp(x_j - max), >= about 1
  double lse = 0;                   ///< natural
  double lse_radius = 0;            ///< natural
  std::vector<double> o, o_radius;  ///< [dv]
};

/// Bound of one row for one declared arithmetic (numerics.md 2.2 to 2.7 with the corrections of 2.14).
struct RowBound {
  std::vector<double> o_tau;        ///< [dv]
  double lse_tau = 0;               ///< in the declared base
  std::string out_of_range;         ///< empty: every declared intermediate stays inside its format
  double infinite_v_depth = 0;      ///< beyond this D_j a P may have become 0, so that 0 * inf = NaN is legal
};

RowBound bound_row(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic);

/// The sentences a report prints under "assumptions" for bounds made by bound_row.
std::vector<std::string> bound_assumptions(const Arithmetic& arithmetic);

}  // namespace assay
