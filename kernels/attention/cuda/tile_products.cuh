// The two matrix products of a key tile on fragments: S = Q K^T and O += P V, each output one chain of 16-element
// blocks in ascending order.
#pragma once

#include <cstdint>

#include "kernels/attention/cuda/element.cuh"
#include "kernels/attention/cuda/shared_tile.cuh"

namespace assay::cuda {

/// How a block of threads shares a query tile of kRows rows: every warp has kRowTiles times 16 of them, so that a
/// fragment of K or V serves them all, and all keys of a tile of kKeys.
template <class Element_, int kDim_, int kKeys_, int kRowTiles_, int kWarps_>
struct Shape {
  using Element = Element_;
  static constexpr int kDim = kDim_, kKeys = kKeys_, kRowTiles = kRowTiles_, kWarps = kWarps_;
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps * kWarpRows, kThreads = 32 * kWarps;
  static constexpr int kTileBytes = kKeys * kDim * 2, kQueryBytes = kRows * kDim * 2;
  static constexpr int kSharedBytes = kQueryBytes + 4 * kTileBytes;  // K and V twice
  /// Blocks that an SM's registers hold: four warps of 255 registers each are half of them.
  static constexpr int kBlocks = kWarps <= 4 ? 2 : 1;
  /// Accumulators of S [16-row tile][8 keys] and O [16-row tile][8 channels]: lane 4 g + t has rows g and g + 8 in the
  /// halves of the last index, columns 2 t and 2 t + 1.
  using Scores = float[kRowTiles][kKeys / 8][4];
  using Output = float[kRowTiles][kDim / 8][4];
};

/// Addresses of the lane's rows in a matrix that is the left operand, or the right one of P V (transposed on the way).
template <int kDim>
__device__ __forceinline__ std::uint32_t rows_then_channels(std::uint32_t tile, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile + swizzled<kDim>(row + lane % 16, lane / 16);
}
/// The same for the right operand of Q K^T: 16 keys by 16 channels are the fragments of two neighbouring 8-key tiles.
template <int kDim>
__device__ __forceinline__ std::uint32_t channels_then_rows(std::uint32_t tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile + swizzled<kDim>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

/// `q` and `k` from rows_then_channels and channels_then_rows.
template <class S>
__device__ __forceinline__ void multiply_scores(typename S::Scores& x, std::uint32_t q, std::uint32_t k) {
#pragma unroll
  for (int rt = 0; rt < S::kRowTiles; ++rt)
#pragma unroll
    for (int n = 0; n < S::kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) x[rt][n][e] = 0.0F;
#pragma unroll
  for (int step = 0; step < S::kDim / 16; ++step) {
    std::uint32_t a[S::kRowTiles][4];
#pragma unroll
    for (int rt = 0; rt < S::kRowTiles; ++rt) load_matrices(a[rt], channel_step(q, step) + rt * 16 * S::kDim * 2);
#pragma unroll
    for (int group = 0; group < S::kKeys / 16; ++group) {
      std::uint32_t b[4];
      load_matrices(b, channel_step(k, step) + group * 16 * S::kDim * 2);
#pragma unroll
      for (int rt = 0; rt < S::kRowTiles; ++rt) {
        S::Element::multiply(x[rt][2 * group], a[rt], b[0], b[1]);
        S::Element::multiply(x[rt][2 * group + 1], a[rt], b[2], b[3]);
      }
    }
  }
}

/// P of 16 keys times their V; `v` from rows_then_channels of the first of them.
template <class S>
__device__ __forceinline__ void multiply_values(typename S::Output& o, const std::uint32_t (&p)[S::kRowTiles][4],
                                                std::uint32_t v) {
#pragma unroll
  for (int n = 0; n < S::kDim / 16; ++n) {
    std::uint32_t b[4];
    load_matrices_transposed(b, channel_step(v, n));
#pragma unroll
    for (int rt = 0; rt < S::kRowTiles; ++rt) {
      S::Element::multiply(o[rt][2 * n], p[rt], b[0], b[1]);
      S::Element::multiply(o[rt][2 * n + 1], p[rt], b[2], b[3]);
    }
  }
}

}  // namespace assay::cuda
