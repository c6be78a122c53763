// Rows without an admissible key whose output is the mean of V: P = 1 on every key of the sequence, in the order and by
// the block-FMA of the tile kernels.
#pragma once

#include <cuda_runtime.h>

#include "kernels/attention/cuda/output.cuh"
#include "kernels/attention/cuda/row_end.cuh"
#include "kernels/attention/cuda/sequence.cuh"

namespace assay::cuda {

/// One warp per sequence, head and eight channels. Runs behind the tile kernel and overwrites those rows only.
template <class Element, int kKeys, bool kBackward>
__global__ void __launch_bounds__(32) mean_rows(const __grid_constant__ ForwardParams p) {
  const int groups = (p.dim_v + kChunk - 1) / kChunk, channel = static_cast<int>(blockIdx.x) % groups * kChunk;
  const int head = static_cast<int>(blockIdx.x) / groups % p.heads_q;
  const int batch = static_cast<int>(blockIdx.x) / groups / p.heads_q;
  const Span queries = span_of(p.q_len, batch), keys = span_of(p.kv_len, batch);
  const RowBand band(p, queries.len, keys.len);
  if (!takes_mean(p, p.sink_kind == Sink::kNone ? -kInfinity : p.sink[head])) return;

  const int lane = static_cast<int>(threadIdx.x), column = channel + lane / 4;
  const std::uint16_t* v = static_cast<const std::uint16_t*>(p.v) + batch * p.v_at.batch +
                           head / (p.heads_q / p.heads_kv) * p.v_at.head + keys.start * p.v_at.row + column;
  const auto pair = [&](int key) {
    const auto code = [&](int at) -> std::uint32_t {
      return at < keys.len && column < p.dim_v ? v[at * p.v_at.row] : 0;
    };
    return code(key) | code(key + 1) << 16;
  };
  const std::uint32_t one = Element::pack(1.0F, 1.0F), ones[4] = {one, one, one, one};
  float sum[4] = {};
  const int tiles = (keys.len + kKeys - 1) / kKeys;
  for (int n = 0; n < tiles; ++n) {
    const int first = (kBackward ? tiles - 1 - n : n) * kKeys;
    for (int key = first; key < min(first + kKeys, keys.len); key += 16)
      Element::multiply(sum, ones, pair(key + lane % 4 * 2), pair(key + lane % 4 * 2 + 8));
  }
  const float inverse = keys.len == 0 ? 0.0F : __fdiv_rn(1.0F, static_cast<float>(keys.len));
  float mean[kChunk];
#pragma unroll
  for (int c = 0; c < kChunk; ++c) mean[c] = __fmul_rn(__shfl_sync(0xffffffffU, sum[c % 2], c / 2), inverse);
  const RowPlace place{batch, head, queries.start, 0, queries.len};
  for (int row = lane; row < queries.len; row += 32)
    if (band.first(row) >= band.end(row))
      store_channels(p, place.element(p.o_at, row) + channel, p.dim_v - channel, mean);
}

template <class Element, int kKeys, bool kBackward>
void launch_mean_rows(const ForwardParams& p, cudaStream_t stream) {
  const std::int64_t blocks = std::int64_t{p.batch} * p.heads_q * ((p.dim_v + kChunk - 1) / kChunk);
  if (p.empty_output == EmptyOutput::kMean && blocks > 0)
    mean_rows<Element, kKeys, kBackward><<<static_cast<unsigned>(blocks), 32, 0, stream>>>(p);
}

}  // namespace assay::cuda
