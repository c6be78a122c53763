// fp32 functions that the device kernels need, each with the host's promises (kernels/numeric.h).
#pragma once

namespace assay::cuda {

inline constexpr float kLog2e = 0x1.715476p+0F;
inline constexpr float kInfinity = __builtin_huge_valf();

/// 2^x within 2 ulp, subnormal results kept.
__device__ __forceinline__ float exp2_kept(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The same bits where x >= -126, zero below.
__device__ __forceinline__ float exp2_flushed(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The larger one; NaN if either is.
__device__ __forceinline__ float max_keeping_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

/// Over the four lanes of a quad, which hold the same rows.
__device__ __forceinline__ float max_of_quad(float x) {
  x = max_keeping_nan(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return max_keeping_nan(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

/// (l0 + l2) + (l1 + l3), as kernels/attention/quad_sum.h adds.
__device__ __forceinline__ float sum_of_quad(float l) {
  l += __shfl_xor_sync(0xffffffffU, l, 2);
  return l + __shfl_xor_sync(0xffffffffU, l, 1);
}

}  // namespace assay::cuda
