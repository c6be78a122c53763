// Attention under a hypothesis: the fp64 answer of one row for a given key set, scale and view of V.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "oracle/ops/attention/problem.h"

namespace assay {

struct RowOutput {
  std::vector<double> o;  ///< [dv]; zeros without keys
  double lse = 0;         ///< in the declared base; -inf without keys
};

/// What a kernel would return that used these keys and this scale, and saw `see_v(v)` in place of each value v.
RowOutput attend(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 double scale, const std::function<double(double)>& see_v = nullptr);

}  // namespace assay
