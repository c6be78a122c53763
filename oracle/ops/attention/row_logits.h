// The logits of one row whose keys are not all alike: masked, biased, capped, scaled by block, or not finite.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/ops/attention/analysis.h"

namespace assay {

/// What the logits of a row's admissible keys are, beside the finite ones.
struct LogitFacts {
  bool nan = false, plus_inf = false;  ///< some x is
  bool capped_infinity = false;        ///< some y was infinite under a soft cap (rule 7 of row_truth.h)
  bool infinite_factor = false;        ///< some f was infinite or NaN (rule 8)
  std::vector<std::int32_t> no_weight; ///< keys of x = -inf
};

/// Reads the logits of `admissible` keys, whose scores s are `score` (parallel to them): keeps those of finite x in the arrays
/// keys, score, magnitude, factor, linear and bias of `a`, with `a.top`, and their x in `logits`. `q_norm` is at least |q| (1 + u).
/// A key of infinite y under a soft cap stays, with score, factor and linear 0: nothing about its x is rounded.
LogitFacts gather_logits(const AttentionProblem& problem, const HeadOperands& head, const std::vector<std::int32_t>& admissible,
                         const std::vector<double>& score, double q_norm, RowAnalysis& a, std::vector<double>& logits);

/// t_j = x_j - x_top. Where one factor and no soft cap lie between score and logit, scores are subtracted first, so that the error
/// stays relative to the difference.
void gather_depths(const AttentionParams& params, const RowAnalysis& a, const std::vector<double>& logits, std::vector<double>& t);

}  // namespace assay
