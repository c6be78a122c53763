// Attention under a hypothesis: the fp64 answer of one row for a given key set, scale and view of V.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "oracle/ops/attention/operands.h"

namespace assay {

struct RowOutput {
  std::vector<double> o;  ///< [dv]; zeros without keys
  double lse = 0;         ///< in the declared base; -inf without keys
};

/// Answers for rows of one problem under changed key sets, scales and values; decodes each head once.
class Counterfactual {
 public:
  explicit Counterfactual(const AttentionProblem& problem) : problem_(problem) {}

  /// What a kernel would return for the row that used these keys and this scale, and saw `see_v(v)` in place of each v.
  RowOutput attend(const AttentionRow& row, const std::vector<std::int32_t>& keys, double scale,
                   const std::function<double(double)>& see_v = nullptr);

 private:
  const AttentionProblem& problem_;
  HeadOperands head_;
  std::vector<double> q_, score_, magnitude_;
};

}  // namespace assay
