// Unfused attention on CUDA cores: fp32 scores of a group of query tiles in device memory, then maximum, weights, sum
// and P V of each row; the host twin's chains, one thread per chain.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/attention/cuda/launches.h"
#include "kernels/attention/cuda/logit_rule.cuh"
#include "kernels/attention/cuda/output.cuh"
#include "kernels/attention/cuda/row_end.cuh"

namespace assay::cuda {

struct Fp32 {};

namespace {

constexpr int kRows = kNaiveRows, kWarps = 8, kThreads = 32 * kWarps;

template <class Element>
struct Stored;
template <>
struct Stored<Bf16> {
  using Type = __nv_bfloat16;
};
template <>
struct Stored<Fp16> {
  using Type = __half;
};
template <>
struct Stored<Fp32> {
  using Type = float;
};
__device__ float widened(float x) { return x; }
__device__ float widened(__half x) { return __half2float(x); }
__device__ float widened(__nv_bfloat16 x) { return __bfloat162float(x); }

/// kRows neighbouring rows of a head.
struct NaiveTile {
  int batch, head, kv_head;
  RowPlace place;
  Span keys;
  RowBand band;

  __device__ NaiveTile(const ForwardParams& p, std::int64_t tile)
      : batch(static_cast<int>(tile / tiles(p) / p.heads_q)),
        head(static_cast<int>(tile / tiles(p) % p.heads_q)),
        kv_head(head / (p.heads_q / p.heads_kv)),
        place(place_of(p, batch, head, static_cast<int>(tile % tiles(p)) * kRows)),
        keys(span_of(p.kv_len, batch)),
        band(p, place.q_len, keys.len) {}

  static __host__ __device__ std::int64_t tiles(const ForwardParams& p) {
    return (p.q_len.longest + kRows - 1) / kRows;
  }
  static __device__ RowPlace place_of(const ForwardParams& p, int batch, int head, int first) {
    const Span queries = span_of(p.q_len, batch);
    return {batch, head, queries.start, first, queries.len};
  }
  template <class T>
  __device__ const T* head_of(const void* data, const TokenStrides& at) const {
    return static_cast<const T*>(data) + batch * at.batch + kv_head * at.head + keys.start * at.row;
  }
};

/// scores[tile][key][row] = x of the admissible and other keys. A block has kRows rows and 32 keys at a time, a warp
/// four of these; each x is one chain of multiply and add over the channels, ascending.
template <class T>
__global__ void __launch_bounds__(kThreads)
    naive_scores(const __grid_constant__ ForwardParams p, std::int64_t first, float* scores) {
  const NaiveTile tile(p, first + blockIdx.x);
  if (tile.place.first >= tile.place.q_len) return;
  const LogitRule<true> rule(p, tile.band, tile.batch, tile.head);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const T* q = static_cast<const T*>(p.q) + tile.batch * p.q_at.batch + tile.head * p.q_at.head +
               (tile.place.start + tile.place.first) * p.q_at.row;
  const T* k = tile.head_of<T>(p.k, p.k_at);
  const int rows = min(kRows, tile.place.q_len - tile.place.first), query = tile.place.first + lane;
  const int anchor = rule.anchor(query, tile.band.position(query));
  __shared__ float q_part[32][kRows + 1], k_part[32][33];
  float* x = scores + blockIdx.x * static_cast<std::int64_t>(p.kv_len.longest) * kRows;
  for (int key = static_cast<int>(blockIdx.y) * 32; key < tile.keys.len; key += static_cast<int>(gridDim.y) * 32) {
    float sum[4] = {};
    for (int c = 0; c < p.dim_qk; c += 32) {
      __syncthreads();
      for (int r = warp; r < 32; r += kWarps) {
        const bool channel = c + lane < p.dim_qk;
        q_part[lane][r] = channel && r < rows ? widened(q[r * p.q_at.row + c + lane]) : 0.0F;
        k_part[r][lane] = channel && key + r < tile.keys.len ? widened(k[(key + r) * p.k_at.row + c + lane]) : 0.0F;
      }
      __syncthreads();
      for (int d = 0; d < min(32, p.dim_qk - c); ++d)
#pragma unroll
        for (int n = 0; n < 4; ++n) sum[n] = __fadd_rn(sum[n], __fmul_rn(q_part[d][lane], k_part[warp * 4 + n][d]));
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int at = key + warp * 4 + n;
      float s = __fmul_rn(sum[n], p.scale);
      if (rule.capped()) s = rule.capped(s);
      if (rule.biased()) s = rule.biased(s, at - anchor);
      if (at < tile.keys.len) x[static_cast<std::int64_t>(at) * kRows + lane] = s;
    }
  }
}

/// A block has kRows rows, one per lane; its warps share the keys for the maximum and the weights, and the channels, of
/// which each row's o is one chain over the keys, ascending, as is its l.
template <class T>
__global__ void __launch_bounds__(kThreads)
    naive_rows(const __grid_constant__ ForwardParams p, std::int64_t first, float* scores) {
  const NaiveTile tile(p, first + blockIdx.x);
  if (tile.place.first >= tile.place.q_len) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int query = tile.place.first + lane, last = min(tile.place.first + kRows, tile.place.q_len) - 1;
  const bool live = query < tile.place.q_len;
  const int begin = tile.band.first(query), end = live ? tile.band.end(query) : 0;
  const int low = tile.band.first(tile.place.first), high = tile.band.end(last);
  float* x = scores + blockIdx.x * static_cast<std::int64_t>(p.kv_len.longest) * kRows + lane;

  __shared__ float maxima[kWarps][32];
  float m = -kInfinity;
  for (int key = low + warp; key < high; key += kWarps)
    if (key >= begin && key < end) m = max_keeping_nan(m, x[static_cast<std::int64_t>(key) * kRows]);
  maxima[warp][lane] = m;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) m = max_keeping_nan(m, maxima[w][lane]);
  for (int key = low + warp; key < high; key += kWarps)
    if (key >= begin && key < end) {
      float& s = x[static_cast<std::int64_t>(key) * kRows];
      s = exp2_kept(__fmul_rn(__fsub_rn(s, m), kLog2e));
    }
  __syncthreads();

  const float sink = p.sink_kind == Sink::kNone ? -kInfinity : p.sink[tile.head];
  const bool mean = m == -kInfinity && takes_mean(p, sink);
  const T* v = tile.head_of<T>(p.v, p.v_at);
  const bool any_mean = __any_sync(0xffffffffU, live && mean);
  const int from = any_mean ? 0 : low, to = any_mean ? tile.keys.len : high;
  for (int channel = warp * kChunk; channel < p.dim_v; channel += kWarps * kChunk) {
    float o[kChunk] = {}, l = 0.0F;
    for (int key = from; key < to; ++key) {
      const bool sees = mean || (key >= begin && key < end && m != -kInfinity);
      const float weight = mean ? 1.0F : sees ? x[static_cast<std::int64_t>(key) * kRows] : 0.0F;
      if (sees) l = __fadd_rn(l, weight);
#pragma unroll
      for (int c = 0; c < kChunk; ++c) {
        const float value = channel + c < p.dim_v ? widened(v[key * p.v_at.row + channel + c]) : 0.0F;
        if (sees) o[c] = __fadd_rn(o[c], __fmul_rn(weight, value));
      }
    }
    const RowEnd finish = m == -kInfinity ? end_empty_row(p, sink) : end_row(p, m, __fmul_rn(m, kLog2e), l, sink);
#pragma unroll
    for (int c = 0; c < kChunk; ++c) {
      if (mean)
        o[c] = tile.keys.len == 0 ? 0.0F : __fdiv_rn(o[c], static_cast<float>(tile.keys.len));
      else
        o[c] = finish.empty ? finish.fill : __fdiv_rn(__fmul_rn(o[c], finish.keep), finish.sum);
    }
    if (!live) continue;
    store_channels(p, tile.place.element(p.o_at, query) + channel, p.dim_v - channel, o);
    if (p.lse != nullptr && channel == 0) p.lse[tile.place.element(p.lse_at, query)] = finish.lse;
  }
}

}  // namespace

template <class Element>
void launch_naive(const ForwardParams& p, float* scores, std::int64_t room, CUstream_st* stream) {
  using T = typename Stored<Element>::Type;
  const std::int64_t tiles = NaiveTile::tiles(p) * p.heads_q * p.batch;
  const int key_blocks = (p.kv_len.longest + 31) / 32;
  for (std::int64_t first = 0; first < tiles; first += room) {
    const auto count = static_cast<unsigned>(tiles - first < room ? tiles - first : room);
    if (key_blocks > 0)
      naive_scores<T>
          <<<dim3(count, static_cast<unsigned>(key_blocks < 65535 ? key_blocks : 65535)), kThreads, 0, stream>>>(
              p, first, scores);
    naive_rows<T><<<count, kThreads, 0, stream>>>(p, first, scores);
  }
}

template void launch_naive<Bf16>(const ForwardParams&, float*, std::int64_t, CUstream_st*);
template void launch_naive<Fp16>(const ForwardParams&, float*, std::int64_t, CUstream_st*);
template void launch_naive<Fp32>(const ForwardParams&, float*, std::int64_t, CUstream_st*);

}  // namespace assay::cuda
