// Normalising the finished rows of a warp and storing them, by way of shared memory so that a lane has whole chunks.
#pragma once

#include "kernels/attention/cuda/online_rows.cuh"
#include "kernels/attention/cuda/output.cuh"
#include "kernels/attention/cuda/row_end.cuh"

namespace assay::cuda {

/// Rows of O in shared memory as fp32: their stride lets the accumulator layout's eight rows lie in different banks.
template <int kDim>
inline constexpr int kStagedRow = kDim + 8;

/// `staged` is the warp's own, of kWarpRows rows.
template <class S, bool kGeneral>
__device__ __forceinline__ void store_rows(const ForwardParams& p, const OnlineRows<S>& rows,
                                           const LogitRule<kGeneral>& rule, const RowPlace& place, float* staged) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float sink = p.sink_kind == Sink::kNone ? -kInfinity : p.sink[place.head];
#pragma unroll
  for (int r = 0; r < OnlineRows<S>::kRows; ++r) {
    const int row = r / 2 * 16 + r % 2 * 8 + lane / 4;
    const float l = sum_of_quad(rows.l[r]), m = rows.m[r];
    const RowEnd end =
        m == -kInfinity ? end_empty_row(p, sink) : end_row(p, rule.natural(m), __fmul_rn(m, rule.unit()), l, sink);
    const float factor = __fdiv_rn(end.keep, end.sum);
#pragma unroll
    for (int n = 0; n < S::kDim / 8; ++n) {
      const float a = __fmul_rn(rows.o[r / 2][n][r % 2 * 2], factor);
      const float b = __fmul_rn(rows.o[r / 2][n][r % 2 * 2 + 1], factor);
      *reinterpret_cast<float2*>(staged + row * kStagedRow<S::kDim> + n * 8 + lane % 4 * 2) =
          end.empty ? float2{end.fill, end.fill} : float2{a, b};
    }
    if (p.lse != nullptr && lane % 4 == 0 && place.first + row < place.q_len)
      p.lse[place.element(p.lse_at, place.first + row)] = end.lse;
  }
  __syncwarp();
  constexpr int kChunks = S::kDim / kChunk;
#pragma unroll 1
  for (int i = lane; i < S::kWarpRows * kChunks; i += 32) {
    const int row = i / kChunks, channel = i % kChunks * kChunk;
    if (faulty(DeviceFault::kUnwrittenRow) && place.q_len > 1 && place.first + row == place.q_len - 1) continue;
    if (place.first + row < place.q_len && channel < p.dim_v)
      store_channels(p, place.element(p.o_at, place.first + row) + channel, p.dim_v - channel,
                     staged + row * kStagedRow<S::kDim> + channel);
  }
}

}  // namespace assay::cuda
