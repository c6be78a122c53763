// The online softmax of a warp's rows over key tiles, on accumulator fragments.
#pragma once

#include <cstdint>

#include "kernels/attention/cuda/logit_rule.cuh"
#include "kernels/attention/cuda/tile_products.cuh"

namespace assay::cuda {

/// What a lane carries from key tile to key tile for its rows, two per 16-row tile: row r / 2 * 16 + r % 2 * 8 + g.
/// The running maximum is the row's, the sum the lane's own columns' (kernels/attention/quad_sum.h).
template <class S>
struct OnlineRows {
  static constexpr int kRows = 2 * S::kRowTiles;
  float m[kRows], l[kRows];
  typename S::Output o;

  __device__ __forceinline__ OnlineRows() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      m[r] = faulty(DeviceFault::kFalseMax) ? -5e4F : -kInfinity;
      l[r] = 0.0F;
    }
#pragma unroll
    for (int rt = 0; rt < S::kRowTiles; ++rt)
#pragma unroll
      for (int n = 0; n < S::kDim / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[rt][n][e] = 0.0F;
  }
};

/// Calls f(x, r, n, e) on every score of the lane: of its r-th row, key 8 n + 2 t + e of the tile.
template <class S, class F>
__device__ __forceinline__ void for_each_score(typename S::Scores& x, F&& f) {
#pragma unroll
  for (int r = 0; r < 2 * S::kRowTiles; ++r)
#pragma unroll
    for (int n = 0; n < S::kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) f(x[r / 2][n][r % 2 * 2 + e], r, n, e);
}

/// Scores of the tile that begins at `key` become x; the lane's first row is `query`. One pass per rule, so that a call
/// that lacks one branches once per tile.
template <class S>
__device__ __forceinline__ void adjust_scores(typename S::Scores& x, const LogitRule<true>& rule, const RowBand& band,
                                              int query, int key) {
  for_each_score<S>(x, [&](float& s, int, int, int) { s = rule.scaled(s); });
  if (rule.capped()) for_each_score<S>(x, [&](float& s, int, int, int) { s = rule.capped(s); });
  if (!rule.biased()) return;
  key += static_cast<int>(threadIdx.x) % 4 * 2;
  for_each_score<S>(x, [&](float& s, int r, int n, int e) {
    const int row = query + r / 2 * 16 + r % 2 * 8;
    s = rule.biased(s, key + n * 8 + e - rule.anchor(row, band.position(row)));
  });
}

/// Inadmissible keys get x = -inf, which gives them P = 0 under every finite maximum.
template <class S>
__device__ __forceinline__ void mask_scores(typename S::Scores& x, const RowBand& band, int query, int key) {
  key += static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2 * S::kRowTiles; ++r) {
    const int row = query + r / 2 * 16 + r % 2 * 8, first = band.first(row) - key, end = band.end(row) - key;
#pragma unroll
    for (int n = 0; n < S::kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (n * 8 + e < first || n * 8 + e >= end)
          x[r / 2][n][r % 2 * 2 + e] =
              faulty(DeviceFault::kGhostKey) && key + n * 8 + e == band.kv_len() ? 0.0F : -kInfinity;
  }
}

/// Raises the maxima, rescales l and O, and turns each x into log2 P. Tells whether log2 P may lie below -126 somewhere
/// in the warp, where P is no normal number.
template <class S, class Numerics, bool kGeneral>
__device__ __forceinline__ bool raise_maxima(OnlineRows<S>& rows, typename S::Scores& x,
                                             const LogitRule<kGeneral>& rule) {
  bool small = false;
#pragma unroll
  for (int r = 0; r < OnlineRows<S>::kRows; ++r) {
    const float before = rows.m[r];
    float high = before;
#pragma unroll
    for (int n = 0; n < S::kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) high = max_keeping_nan(high, x[r / 2][n][r % 2 * 2 + e]);
    high = max_of_quad(high);
    const float m = Numerics::raised(before, high, rule.unit());
    rows.m[r] = m;
    // A maximum of -inf (nothing admissible so far, or logits of -inf only) would give (-inf) - (-inf).
    const float max = m == -kInfinity ? 0.0F : m, shift = rule.shift(max);
    // Rounded sums of squares never lie below the largest square: an exact 126^2 bounds every exponent, for one
    // instruction a key on the pipe that has room.
    float squares = 0.0F;
#pragma unroll
    for (int n = 0; n < S::kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& y = x[r / 2][n][r % 2 * 2 + e];
        y = rule.exponent(y, shift);
        if constexpr (Numerics::kAsksForSmall) squares = __fmaf_rn(y, y, squares);
      }
    if constexpr (Numerics::kAsksForSmall) small = small || !(squares < 126.0F * 126.0F);
    const float alpha = exp2_kept(__fmul_rn(__fsub_rn(before, max), rule.unit()));
    if (!faulty(DeviceFault::kSumNotRescaled)) rows.l[r] = __fmul_rn(rows.l[r], alpha);
    if (faulty(DeviceFault::kSumInBf16)) rows.l[r] = bf16_rounded(rows.l[r]);
    if (faulty(DeviceFault::kAccumulatorNotRescaled)) continue;
    const float beta = faulty(DeviceFault::kAlphaInBf16) ? bf16_rounded(alpha) : alpha;
#pragma unroll
    for (int n = 0; n < S::kDim / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) rows.o[r / 2][n][r % 2 * 2 + e] = __fmul_rn(rows.o[r / 2][n][r % 2 * 2 + e], beta);
  }
  return Numerics::kAsksForSmall ? __any_sync(0xffffffffU, small) : Numerics::kSmallPossible;
}

/// P of every key, added to l before rounding, and O += round(P) V, 16 keys at a time. `v`: rows_then_channels of the V
/// tile. kSmall: log2 P may lie below -126.
template <class S, class Numerics, bool kSmall>
__device__ __forceinline__ void weigh_values(OnlineRows<S>& rows, const typename S::Scores& x, std::uint32_t v) {
#pragma unroll
  for (int group = 0; group < S::kKeys / 16; ++group) {
    std::uint32_t a[S::kRowTiles][4];
#pragma unroll
    for (int r = 0; r < OnlineRows<S>::kRows; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto& pair = x[r / 2][2 * group + half];
        const float p0 = Numerics::template weight<kSmall>(pair[r % 2 * 2], half);
        const float p1 = Numerics::template weight<kSmall>(pair[r % 2 * 2 + 1], half);
        rows.l[r] = __fadd_rn(__fadd_rn(rows.l[r], p0), p1);
        a[r / 2][half * 2 + r % 2] = faulty(DeviceFault::kTruncatedP)
                                         ? S::Element::pack(bf16_truncated(p0), bf16_truncated(p1))
                                         : S::Element::pack(p0, p1);
      }
    multiply_values<S>(rows.o, a, v + group * 16 * S::kDim * 2);
  }
}

}  // namespace assay::cuda
