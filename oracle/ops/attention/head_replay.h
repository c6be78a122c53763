// Keys and values of one head as a replay needs them: fp32 keys by channel, exponents as the tensor cores see them,
// scores.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/mma.h"
#include "oracle/ops/attention/analysis.h"
#include "oracle/ops/attention/value_chain.h"

namespace assay {

class HeadReplay {
 public:
  /// Keys only if `keys` is asked for. Does nothing for a head already loaded.
  void load(const AttentionProblem& problem, const RowAnalysis& row, bool keys);

  ValueOperand values(const RowAnalysis& row) const {
    return {row.operands->v.data(), v_exponent_.data(), static_cast<std::size_t>(row.operands->dim_v)};
  }
  /// Bounds |s^_j - s_j| of a block-FMA chain in ascending order of channels, for the row's keys (D1).
  void score_errors(const AttentionProblem& problem, const RowAnalysis& row, const MmaModel& model,
                    std::vector<double>& error);
  /// The bits of such a chain.
  void emulate_scores(const AttentionProblem& problem, const RowAnalysis& row, const MmaModel& model,
                      std::vector<double>& score);

 private:
  void load_query(const AttentionProblem& problem, const RowAnalysis& row);

  std::int64_t batch_ = -1, kv_head_ = -1, count_ = 0, dim_ = 0;
  bool has_keys_ = false;
  std::vector<float> k_;                  ///< [d][keys]
  std::vector<std::int16_t> k_exponent_;  ///< the same shape
  std::vector<std::int16_t> v_exponent_;  ///< [keys][dv]
  std::vector<double> q_;
  std::vector<float> q32_, scores_;
};

}  // namespace assay
