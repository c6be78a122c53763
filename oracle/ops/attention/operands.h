// Keys and values of one head as fp64, and the vectorised score loop over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/ops/attention/problem.h"

namespace assay {

/// Keys and values of one (batch, kv head) as fp64, for all its rows.
struct HeadOperands {
  std::int64_t batch = -1, kv_head = -1;
  std::int64_t keys = 0, dim_qk = 0, dim_v = 0;
  std::vector<double> k_by_dim;   ///< [d][keys]: scores are vectorised over keys
  std::vector<double> v;          ///< [keys][dv]; non-finite values stored as 0
  double k_max = 0;                ///< largest finite |k|
  std::vector<double> v_max;       ///< [dv] largest finite |v| of the channel times its factor, over all keys
  std::vector<double> v_abs_sum;   ///< [dv] sum of finite |v| times its factor, over all keys, rounded up
  std::vector<std::int32_t> special_v;  ///< keys whose v has a non-finite element, ascending
};

/// Loads the head's operands; does nothing if `head` already holds them.
void load_head(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head);

/// score[j] = sum_c q[c] k[j][c] and magnitude[j] = sum_c |q[c] k[j][c]| for all keys j, each an ascending chain over c.
/// IEEE's rules for infinities and NaN apply.
void head_scores(const HeadOperands& head, std::span<const double> q, std::vector<double>& score,
                 std::vector<double>& magnitude);

}  // namespace assay
