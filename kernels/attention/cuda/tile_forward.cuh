// Attention forward of one query tile: K and V tiles stream through two stages of shared memory, S and P stay in
// registers.
#pragma once

#include "kernels/attention/cuda/store_rows.cuh"

namespace assay::cuda {

/// The query tile of this block: tiles of a head are neighbours, the one with most keys under a causal mask first.
struct QueryTile {
  int batch, head, first;
  __device__ QueryTile(const ForwardParams& p, int rows) {
    const unsigned tiles = static_cast<unsigned>((p.q_len.longest + rows - 1) / rows), row = blockIdx.x / tiles;
    first = static_cast<int>(tiles - 1 - blockIdx.x % tiles) * rows;
    head = static_cast<int>(row % static_cast<unsigned>(p.heads_q));
    batch = static_cast<int>(row / static_cast<unsigned>(p.heads_q));
  }
};

/// One block per query tile. Numerics says in which order key tiles come, when a maximum is raised and how a weight is
/// computed (fa2_numerics.cuh, fa4_numerics.cuh).
template <class S, class Numerics, bool kGeneral>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) tile_forward(const __grid_constant__ ForwardParams p) {
  const QueryTile tile(p, S::kRows);
  const Span queries = span_of(p.q_len, tile.batch), keys = span_of(p.kv_len, tile.batch);
  if (tile.first >= queries.len) return;
  const RowBand band(p, queries.len, keys.len);
  const LogitRule<kGeneral> rule(p, band, tile.batch, tile.head);

  extern __shared__ __align__(1024) unsigned char shared[];
  const std::uint32_t q_tile = shared_address(shared), k_tiles = q_tile + S::kQueryBytes,
                      v_tiles = k_tiles + 2 * S::kTileBytes;
  const int kv_head = faulty(DeviceFault::kWrongKvHead) ? tile.head % p.heads_kv : tile.head / (p.heads_q / p.heads_kv);
  const auto copier = [&](const void* data, const TokenStrides& at, int head, std::int64_t start, int dim) {
    return RowCopier<S::kDim, S::kThreads>(
        static_cast<const std::uint16_t*>(data) + tile.batch * at.batch + head * at.head + start * at.row, at.row, dim,
        p.whole_chunks);
  };
  const auto k = copier(p.k, p.k_at, kv_head, keys.start, p.dim_qk);
  const auto v = copier(p.v, p.v_at, kv_head, keys.start, p.dim_v);

  // Key tiles from the first to the last that some row of the block may see.
  const int block_last = min(tile.first + S::kRows, queries.len) - 1;
  const int low = band.first(tile.first) / S::kKeys;
  int high = (band.end(block_last) + S::kKeys - 1) / S::kKeys;
  if (faulty(DeviceFault::kTailTileSkipped) && high - low > 1 && keys.len % S::kKeys != 0 && high * S::kKeys > keys.len)
    --high;
  const int count = max(0, high - low), start = Numerics::kBackward ? high - 1 : low,
            step = Numerics::kBackward ? -1 : 1;
  const auto copy_tile = [&](int n) {
    const int key = (start + n * step) * S::kKeys, stage = n % 2 * S::kTileBytes;
    k.template copy<S::kKeys>(k_tiles + stage, key, keys.len);
    v.template copy<S::kKeys>(v_tiles + stage, key, keys.len);
  };
  if (count > 0) {
    copier(p.q, p.q_at, tile.head, queries.start, p.dim_qk).template copy<S::kRows>(q_tile, tile.first, queries.len);
    copy_tile(0);
  }
  commit_copies();

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_first = tile.first + warp * S::kWarpRows, warp_last = min(warp_first + S::kWarpRows, queries.len) - 1;
  const int query = warp_first + lane / 4;
  const std::uint32_t q_rows = rows_then_channels<S::kDim>(q_tile, warp * S::kWarpRows);
  OnlineRows<S> rows;
  for (int n = 0; n < count; ++n) {
    wait_copies<0>();
    __syncthreads();
    if (n + 1 < count) copy_tile(n + 1);
    commit_copies();
    const int key = (start + n * step) * S::kKeys;
    // A warp that sees nothing of this tile leaves it out: alpha would be 1 and P 0.
    if (warp_last < warp_first || key >= band.end(warp_last) || key + S::kKeys <= band.first(warp_first)) continue;
    const std::uint32_t stage = static_cast<std::uint32_t>(n % 2 * S::kTileBytes);
    typename S::Scores x;
    multiply_scores<S>(x, q_rows, channels_then_rows<S::kDim>(k_tiles + stage));
    if constexpr (kGeneral) adjust_scores<S>(x, rule, band, query, key);
    if (key < band.first(warp_last) || key + S::kKeys > band.end(warp_first)) mask_scores<S>(x, band, query, key);
    const bool small = raise_maxima<S, Numerics, kGeneral>(rows, x, rule);
    const std::uint32_t values = rows_then_channels<S::kDim>(v_tiles + stage, 0);
    if (small)
      weigh_values<S, Numerics, true>(rows, x, values);
    else
      weigh_values<S, Numerics, false>(rows, x, values);
  }
  __syncthreads();
  static_assert(S::kRows * kStagedRow<S::kDim> * 4 <= S::kSharedBytes);
  store_rows<S, kGeneral>(p, rows, rule, {tile.batch, tile.head, queries.start, warp_first, queries.len},
                          reinterpret_cast<float*>(shared) + warp * S::kWarpRows * kStagedRow<S::kDim>);
}

}  // namespace assay::cuda
