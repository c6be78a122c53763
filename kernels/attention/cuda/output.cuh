// Where the rows of O and the LSE go, and storing channels in the output format.
#pragma once

#include <cstdint>

#include "kernels/attention/cuda/element.cuh"
#include "kernels/attention/cuda/forward_params.h"
#include "kernels/attention/cuda/shared_tile.cuh"

namespace assay::cuda {

/// Eight neighbouring channels, the first `count` of them, rounded to nearest even.
__device__ inline void store_channels(const ForwardParams& p, std::int64_t element, int count, const float* x) {
  if (p.output == OutputFormat::kFp32) {
    float* o = static_cast<float*>(p.o) + element;
    for (int c = 0; c < min(count, kChunk); ++c) o[c] = x[c];
    return;
  }
  std::uint32_t pair[4];
#pragma unroll
  for (int c = 0; c < 4; ++c)
    pair[c] = p.output == OutputFormat::kBf16 ? Bf16::pack(x[2 * c], x[2 * c + 1]) : Fp16::pack(x[2 * c], x[2 * c + 1]);
  std::uint16_t* o = static_cast<std::uint16_t*>(p.o) + element;
  if (p.whole_outputs && count >= kChunk) {
    *reinterpret_cast<uint4*>(o) = {pair[0], pair[1], pair[2], pair[3]};
    return;
  }
#pragma unroll
  for (int c = 0; c < kChunk; ++c)
    if (c < count) o[c] = static_cast<std::uint16_t>(pair[c / 2] >> (c % 2 * 16));
}

/// Where the rows of a warp go: `first` is its first one, of `q_len` whose row 0 is token `start`.
struct RowPlace {
  int batch, head;
  std::int64_t start;
  int first, q_len;
  __device__ std::int64_t element(const TokenStrides& at, int row) const {
    return batch * at.batch + head * at.head + (start + row) * at.row;
  }
};

}  // namespace assay::cuda
