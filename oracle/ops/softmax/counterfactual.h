// Softmax under a hypothesis: the fp64 answer of one row for changed scale, weights, gain or recurrence.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/ops/softmax/problem.h"

namespace assay {

/// What a wrong kernel does differently; the default is nothing.
struct SoftmaxChange {
  double scale = 1;                           ///< factor of the softmax scale
  double gain = 1;                            ///< factor of y
  double ghost = 0;                           ///< that many more keys of logit 0 in every sum
  std::int64_t weak_first = 0, weak_end = 0;  ///< keys [first, end) have their weight
  double weak = 1;                            ///< times this
  double stale =
      0;  ///< share of each rescaling of the running sum that is left out: its factor a becomes a + stale (1 - a)
};

struct SoftmaxValues {
  std::vector<double> y;     ///< [n]; NaN for keys that have no number
  double lse = 0;            ///< in the declared base
  std::vector<double> m, l;  ///< [steps]; NaN before the first finite logit
};

/// The recurrence runs over tiles of `steps` keys, or of 64 if the case asks for no states. For rows with `has_numbers`
/// only.
SoftmaxValues softmax_under(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite,
                            const SoftmaxChange& change);

/// The key tile of 64, or the key, with the largest share of the row's weight: [first, end), and the share.
struct WeightRange {
  std::int64_t first = 0, end = 0;
  double weight = 0;
};
WeightRange heaviest_key(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite);
WeightRange heaviest_tile(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite);

}  // namespace assay
