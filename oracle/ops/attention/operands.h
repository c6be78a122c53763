// Keys and values of one head as fp64, packed in panels for the products of a strip of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/aligned.h"
#include "oracle/ops/attention/problem.h"

namespace assay {

/// Keys per tile: weights and values are multiplied tile by tile, each sum from zero.
inline constexpr std::size_t kKeyTile = 256;

/// Keys and values of one (batch, kv head) as fp64, for all its rows. Infinities and NaNs stay in the keys; a value that is not
/// finite once its factor is in is stored as 0 and listed in `special_v`.
struct HeadOperands {
  std::int64_t batch = -1, kv_head = -1;
  std::int64_t keys = 0, dim_qk = 0, dim_v = 0;
  AlignedVector<double> k_panels;  ///< [keys / 8][d][8], zero beyond the last key
  std::vector<double> v;           ///< [keys][dv]
  AlignedVector<double> v_panels;  ///< the same, by tiles of T = kKeyTile keys (the last one shorter): [dv / 8][T][8]
  /// |v| from above as fp32 by tiles, [dv / 16][T][16]: |v_c| <= v_abs v_abs_unit[c], within 2^-11, at most 12 bits, zero for
  /// zeros only; units are powers of two.
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
  const double* k_panel(std::size_t panel) const { return k_panels.data() + panel * static_cast<std::size_t>(dim_qk) * 8; }
  std::size_t value_panels() const { return (static_cast<std::size_t>(dim_v) + 7) / 8; }
  std::size_t value_panels32() const { return (static_cast<std::size_t>(dim_v) + 15) / 16; }
  const double* v_panel(std::size_t tile, std::size_t panel) const {
    return v_panels.data() + tile * value_panels() * kKeyTile * 8 + panel * tile_keys(tile) * 8;
  }
  const float* v_abs_panel(std::size_t tile, std::size_t panel) const {
    return v_abs.data() + tile * value_panels32() * kKeyTile * 16 + panel * tile_keys(tile) * 16;
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
  void bound_values(std::size_t tile);

 private:
  struct TileFacts {
    std::vector<double> raw_max, max, sum;  ///< [dv] |v|; |v| times factor
    std::vector<std::int32_t> special;
    double k_max = 0;
  };
  const AttentionProblem& problem_;
  HeadOperands& head_;
  AttentionRow any_row_;              ///< of the head: names its factors
  std::vector<TileFacts> tile_facts_;
  std::vector<double> raw_max_;
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

/// Error of a score relative to `magnitude` (a bound on the sum of |q_c k_c|): 0 where (X) of numerics.md 3.1 shows that every
/// partial sum is exact, d rounded additions else.
double score_error_unit(double q_spread, double k_spread, std::int64_t dim);

}  // namespace assay
