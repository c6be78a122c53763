// FlashAttention-4's choices: key tiles from first to last, the maximum raised lazily, a quarter of the exponentials by
// a cubic.
#pragma once

#include "kernels/attention/cuda/scalar.cuh"

namespace assay::cuda {

/// 2^x by the cubic of kernels/numeric.h's exp2_cubic_f32, the same bits for x < 60: larger weights than 2^8 do not
/// occur. 2^r of the fraction r, times 2^n in two steps of which the first is exact.
__device__ __forceinline__ float exp2_cubic(float x) {
  x = max_keeping_nan(x, -151.0F);
  const float n = floorf(x), r = __fsub_rn(x, n);
  float p = __fadd_rn(0x1.d2378ap-3F, __fmul_rn(r, 0x1.3baaa6p-4F));
  p = __fadd_rn(0x1.63e658p-1F, __fmul_rn(r, p));
  p = __fadd_rn(1.0F, __fmul_rn(r, p));
  const float scale = __int_as_float((__float2int_rn(n) + 64 + 127) << 23);
  return __fmul_rn(__fmul_rn(p, scale), 0x1p-64F);
}

struct Fa4Numerics {
  static constexpr bool kBackward = false;
  static constexpr bool kAsksForSmall = false;
  static constexpr bool kSmallPossible = true;
  static constexpr float kThreshold = 8.0F;  ///< by how much the maximum may rise in log2 units before it is raised

  static __device__ __forceinline__ float raised(float before, float high, float unit) {
    const bool stays = before != -kInfinity && __fmul_rn(__fsub_rn(high, before), unit) <= kThreshold;
    return stays ? before : high;
  }
  /// Of 16 neighbouring keys the last four by the cubic: those of the quad's lanes 2 and 3 in the second half.
  template <bool kSmall>
  static __device__ __forceinline__ float weight(float exponent, int half) {
    const float power = exp2_kept(exponent);
    return half == 1 && threadIdx.x % 4 >= 2 ? exp2_cubic(exponent) : power;
  }
};

}  // namespace assay::cuda
