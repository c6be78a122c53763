// Scores of a query tile against a tile of keys by block FMA, their logits and weights, and P V: what all tile kernels
// share.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/call.h"
#include "kernels/attention/quad_sum.h"
#include "kernels/numeric.h"
#include "oracle/arithmetic.h"
#include "oracle/mma.h"

namespace assay {

/// Rows of one head whose key tiles are walked together: those of `kTileM` neighbouring queries that must be computed.
struct QueryTile {
  static constexpr std::int64_t kTileM = 64;
  std::int64_t batch = 0, head = 0;
  std::vector<std::int64_t> queries;
  std::vector<float> q;  ///< [rows, d padded]
  KeyRange keys;  ///< from the first to the last key that some row of the 64 may see by length, causality and window
};

/// The number x that stands for a logit. Folded: x = s, the score of stored values with the scale's sign, and the scale
/// enters in P = exp2(fma(x, c, -fl(m c))), c = fl32(scale log2 e), where `scale` holds the descales of q and k and is
/// positive. On score: x = fl(s scale), soft-capped and biased, and P = exp2(fl(fl(x - m) log2 e)).
struct LogitForm {
  bool on_score = false;
  float scale = 1.0F, c = kLog2e;
  float natural(float x) const { return on_score ? x : x * scale; }
  float log2(float x) const { return x * unit(); }
  float unit() const { return on_score ? kLog2e : c; }  ///< of a difference of two x, in the exponent of 2
};

class TileScores {
 public:
  /// P's format and offset, promotion and exponential are the declared ones.
  TileScores(const AttentionCall& call, const Arithmetic& declared, std::int64_t tile_n);

  std::int64_t tile_n() const { return tile_n_; }
  std::int64_t value_cols() const { return dv_; }  ///< dv padded
  const LogitForm& form() const { return form_; }
  /// v_scale of the loaded head.
  float value_scale() const { return value_scale_; }

  /// Loads K and V of some keys of a query head's group; nothing if they are there already.
  void load(std::int64_t batch, std::int64_t head, KeyRange keys);
  /// The rows cut into query tiles.
  std::vector<QueryTile> query_tiles(const HeadRows& rows) const;

  /// x and the admissible keys of a tile of at most tile_n loaded keys, for every row.
  void compute(const QueryTile& queries, KeyRange keys);
  /// The larger of `from` and the x of the row's admissible keys; NaN if one of them is. Tells whether there is any.
  float maximum(std::size_t row, float from, bool& any) const;
  /// P of the row relative to `max`; adds them, unrounded, to `l`. `masked` is the weight of an inadmissible key: 0.
  void weigh(std::size_t row, float max, float masked, QuadSum& l);
  /// o [rows, value_cols] += round(P) V, one chain of blocks that begins at o; or from zero, then added in fp32, where
  /// promoted.
  void accumulate(std::size_t rows, float* o);
  /// The same for P = 1 on all of some loaded keys, one row.
  void accumulate_ones(KeyRange keys, float* o);

 private:
  void sum_scores_in_fp16(const QueryTile& queries, KeyRange keys);
  void multiply(std::size_t rows, KeyRange keys, float* o);
  std::int64_t leaking(KeyRange keys) const;

  const AttentionCall& call_;
  Arithmetic declared_;
  const MmaModel& model_;
  std::int64_t tile_n_, d_, dv_;  ///< head dimensions padded to the MMA's K
  bool stale_ = false;  ///< a planted fault: a tile's P meets the V of the tile before it
  std::int64_t loaded_head_ = -1;
  KeyRange loaded_, keys_;  ///< loaded, and of the last compute
  LogitForm form_;
  float sign_ = 1.0F;  ///< of the scale, 0 for a scale of 0
  float value_scale_ = 1.0F;
  HeadMatrix kt_, v_;                  ///< K transposed; both begin at loaded_.first
  std::vector<float> x_, p_, pv_sum_;  ///< [rows, tile_n]; [rows, dv]
  std::vector<std::uint8_t> keep_;     ///< [rows, tile_n]
};

}  // namespace assay
