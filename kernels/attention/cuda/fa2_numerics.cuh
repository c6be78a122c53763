// FlashAttention-2's choices: key tiles from last to first, the maximum raised at once, every weight by ex2.approx.
#pragma once

#include "kernels/attention/cuda/scalar.cuh"

namespace assay::cuda {

/// Weights below 2^-126 are computed exactly only where P's format has such numbers: beside the weight 1 of the row's
/// maximum they leave no trace in l.
template <class Element>
struct Fa2Numerics {
  static constexpr bool kBackward = true;
  static constexpr bool kAsksForSmall = Element::kReachesFp32Subnormals;
  static constexpr bool kSmallPossible = false;
  static __device__ __forceinline__ float raised(float, float high, float) { return high; }
  template <bool kSmall>
  static __device__ __forceinline__ float weight(float exponent, int) {
    return kSmall ? exp2_kept(exponent) : exp2_flushed(exponent);
  }
};

}  // namespace assay::cuda
