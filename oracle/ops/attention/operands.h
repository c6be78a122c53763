// Keys and values of one head as fp64, packed in panels for the products of a strip of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/aligned.h"
#include "oracle/ops/attention/problem.h"
#include "oracle/panel_gemm.h"

namespace assay {

/// Keys per tile: weights and values are multiplied tile by tile, each sum from zero.
inline constexpr std::size_t kKeyTile = 256;

/// Keys and values of one (batch, kv head) as fp64, for all its rows. Infinities and NaNs stay in the keys; a value that is not
/// finite once its factor is in is stored as 0 and listed in `special_v`.
struct HeadOperands {
  std::int64_t batch = -1, kv_head = -1;
  std::int64_t keys = 0, dim_qk = 0, dim_v = 0;
  AlignedVector<float> k_panels;  ///< [keys / 8][d][8], zero beyond the last key; every input format is fp32 or shorter
  AlignedVector<double> v;        ///< [keys][dv]
  AlignedVector<float> v_panels;  ///< the same, by tiles of T = kKeyTile keys (the last one shorter): [dv / 16][T][16]
  /// |v| from above in the same order: |v_c| <= |v_abs| v_abs_unit[c], within 2^-11, at most 12 bits, between 2^-36 and 2^101 or 0, and
  /// 0 for zeros only. Units are powers of two. Empty where v_panels is like that with units 1.
  AlignedVector<float> v_abs;
  std::vector<double> v_abs_unit;      ///< [dv rounded up to 16]
  std::vector<double> k_norm;          ///< [keys rounded up to a tile] at least the norm of the finite elements
  std::vector<double> k_spread;        ///< like that: exponent of the largest minus that of the last bit of any element, from above
  double k_norm_max = 0, k_spread_max = 0;
  double k_max = 0;                    ///< largest finite |k|
  std::vector<double> value_factor;    ///< v_scale by key; one element if all keys have the same; 0 where it is not finite
  double value_factor_unit = 1;        ///< power of two >= half the largest |v_scale|
  std::vector<double> v_max;           ///< [dv] largest finite |v| of the channel times its factor, over all keys
  std::vector<double> v_abs_sum;       ///< [dv] sum of finite |v| times its factor, over all keys, rounded up
  std::vector<std::int32_t> special_v; ///< keys whose v times its factor has a non-finite element, ascending

  std::size_t tiles() const { return (static_cast<std::size_t>(keys) + kKeyTile - 1) / kKeyTile; }
  std::size_t tile_keys(std::size_t tile) const { return std::min(kKeyTile, static_cast<std::size_t>(keys) - tile * kKeyTile); }
  const float* k_panel(std::size_t panel) const { return k_panels.data() + panel * static_cast<std::size_t>(dim_qk) * kNarrowPanel; }
  std::size_t value_panels() const { return (static_cast<std::size_t>(dim_v) + kWidePanel - 1) / kWidePanel; }
  std::size_t v_panel(std::size_t tile, std::size_t panel) const {
    return (tile * value_panels() * kKeyTile + panel * tile_keys(tile)) * kWidePanel;
  }
};

/// Loads the head's operands; does nothing if `head` already holds them.
void load_head(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head);

/// The same in steps, so that threads can share the work: every tile of one step, in any order, before the next step.
class HeadLoader {
 public:
  HeadLoader(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head);
  void decode_tile(std::size_t tile);
  void join_tiles();                  ///< once, after all tiles are decoded
  void bound_values(std::size_t tile);  ///< v_abs

 private:
  struct TileFacts {
    std::vector<double> raw_max, raw_least, max, sum;  ///< [dv] |v|, the least but 0; |v| times factor
    std::vector<std::int32_t> special;
    double k_max = 0;
  };
  const AttentionProblem& problem_;
  HeadOperands& head_;
  AttentionRow any_row_;              ///< of the head: names its factors
  std::vector<TileFacts> tile_facts_;
  std::vector<double> raw_max_;
  bool separate_magnitudes_ = false;
};

/// Facts of one vector of finite numbers of a format (others are passed over), for the error of dot products.
struct VectorFacts {
  double max = 0;      ///< largest |x|
  double norm = 0;     ///< Euclidean, rounded up
  double spread = 0;   ///< exponent of the largest element minus that of the last bit of any: from above
  bool finite = true;  ///< all elements are
};
VectorFacts vector_facts(Format format, std::span<const double> x);

/// score[j] = sum_c q[c] k[j][c] and magnitude[j] = sum_c |q[c] k[j][c]| for all keys j, each an ascending chain over c.
/// IEEE's rules for infinities and NaN apply.
void head_scores(const HeadOperands& head, std::span<const double> q, std::vector<double>& score,
                 std::vector<double>& magnitude);

/// Error of a score relative to the sum of |q_c k_jc|, and the largest sum of the spreads of q and k for which (X) of numerics.md 3.1
/// shows that every partial sum is exact.
struct ScoreRounding {
  explicit ScoreRounding(std::int64_t dim);
  double unit = 0, exact_up_to = 0;
  double error(double q_spread, double k_spread) const { return q_spread + k_spread <= exact_up_to ? 0 : unit; }
};

}  // namespace assay
