// Launching a tile kernel and what follows it.
#pragma once

#include "kernels/attention/cuda/launches.h"
#include "kernels/attention/cuda/mean_rows.cuh"
#include "kernels/attention/cuda/tile_forward.cuh"

namespace assay::cuda {

/// The shape for a head size: 255 registers hold O of 32 rows x 128 channels and S of 32 x 64, or as much.
template <class Element, int kDim>
using ShapeFor = Shape<Element, kDim, keys_per_tile(kDim), kDim <= 128 ? 2 : 1, kDim <= 128 ? 4 : 8>;

template <class S, class Numerics, bool kGeneral>
void launch_tiles(const ForwardParams& p, cudaStream_t stream) {
  static_assert(S::kRows == kTileRows);
  const auto kernel = tile_forward<S, Numerics, kGeneral>;
  const auto status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
  const std::int64_t tiles = (std::int64_t{p.q_len.longest} + S::kRows - 1) / S::kRows;
  const std::int64_t blocks = tiles * p.heads_q * p.batch;
  if (status != cudaSuccess || blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), S::kThreads, S::kSharedBytes, stream>>>(p);
  launch_mean_rows<typename S::Element, S::kKeys, Numerics::kBackward>(p, stream);
}

/// Whether a score becomes a logit by more than a positive factor.
inline bool is_general(const ForwardParams& p) {
  return p.softcap > 0.0F || p.alibi != Alibi::kNone || !(p.scale > 0.0F);
}

}  // namespace assay::cuda
