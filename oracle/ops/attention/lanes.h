// Reductions over flat arrays in a fixed order: eight interleaved partial results, so that every register width gives
// the same bits.
#pragma once

#include <cstddef>

namespace assay {

inline constexpr std::size_t kLanes = 8;

/// step(l, j) for j = 0 ... n - 1 with l = j mod 8; vectorises across l if step touches only index l of its arrays.
template <class Step>
[[gnu::always_inline]] inline void for_lanes(std::size_t n, Step step) {
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) step(l, j + l);
  for (std::size_t l = 0; j + l < n; ++l) step(l, j + l);
}

[[gnu::always_inline]] inline double lane_sum(const double* lanes) {
  double sum = 0;
  for (std::size_t l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

[[gnu::always_inline]] inline double lane_max(const double* lanes) {
  double largest = lanes[0];
  for (std::size_t l = 1; l < kLanes; ++l) largest = lanes[l] > largest ? lanes[l] : largest;
  return largest;
}

[[gnu::always_inline]] inline double lane_min(const double* lanes) {
  double smallest = lanes[0];
  for (std::size_t l = 1; l < kLanes; ++l) smallest = lanes[l] < smallest ? lanes[l] : smallest;
  return smallest;
}

}  // namespace assay
