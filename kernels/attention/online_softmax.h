// Online softmax of a query tile over key tiles, FlashAttention-2 step for step: the part that the tile kernels share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/call.h"
#include "oracle/mma.h"

namespace assay {

/// [first, end) of keys or of key tiles.
struct KeyRange {
  std::int64_t first = 0, end = 0;
  bool empty() const { return end <= first; }
};

/// Rows of one head whose key tiles are walked together: those of `kTileM` neighbouring queries that must be computed.
struct QueryTile {
  static constexpr std::int64_t kTileM = 64;
  std::int64_t batch = 0, head = 0;
  std::vector<std::int64_t> queries;
  std::vector<KeyRange> keys;  ///< admissible by length, causality and window
  std::vector<float> q;        ///< [rows, d padded]
  KeyRange tiles;              ///< key tiles that some row of the 64 needs
};

/// What the rows carry from key tile to key tile. A row sum is kept in four parts: in the accumulator layout of
/// m16n8k16, thread t of a quad owns columns 8 b + 2 t and 8 b + 2 t + 1.
struct RowStates {
  std::vector<float> m;                 ///< running maximum, in the score's own unit
  std::vector<std::array<float, 4>> l;  ///< running sums of unrounded P
  std::vector<bool> any;                ///< an admissible key was seen
  std::vector<float> o;                 ///< [rows, dv padded]
  std::vector<float> lse;               ///< after `finish`
  std::vector<bool> empty;              ///< after `finish`: no key, or every logit -inf; O is 0 and LSE -inf then
};

/// Scores come from Hopper's block FMA. Without an additive mask the softmax scale is folded into the exponential,
/// P = exp2(fma(s, c, -fl(m c))) with c = fl32(|scale| log2 e), and s takes the scale's sign, exactly; with one,
/// x = fl(fl(s scale) + bias), P = exp2(fl(fl(x - m) log2 e)).
class TileSoftmax {
 public:
  TileSoftmax(const AttentionCall& call, std::int64_t tile_n);

  /// Loads K and V of a query head's group; cheap if they are there already.
  void load_head(std::int64_t batch, std::int64_t head);
  /// The rows cut into query tiles.
  std::vector<QueryTile> query_tiles(const HeadRows& rows) const;

  RowStates start(const QueryTile& queries) const;
  /// S, mask, maximum, P, row sum, rescaling and P V of one key tile.
  void step(RowStates& states, const QueryTile& queries, std::int64_t tile);
  /// Normalises O by 1 / l and forms the LSE in a base.
  void finish(RowStates& states, LseBase base) const;
  /// Stores O and LSE; empty rows as declared (the mean of V is P = 1 on every key).
  void store(RowStates& states, const QueryTile& queries);

 private:
  struct Step;  ///< one row's shift and rescaling in a key tile
  Step shift(RowStates& states, const QueryTile& queries, std::size_t row, std::int64_t start, std::int64_t keys);
  void mean_of_v(float* o, std::int64_t batch);

  const AttentionCall& call_;
  const MmaModel& model_;
  std::int64_t tile_n_, d_, dv_;  ///< head dimensions padded to the MMA's K
  bool additive_;
  float scale_, c_;  ///< of |scale|
  std::int64_t loaded_ = -1;
  HeadMatrix kt_, v_;               ///< K transposed
  std::vector<float> s_, p_;        ///< [rows, tile_n]
  std::vector<std::uint8_t> keep_;  ///< [tile_n], one row
};

/// A case that a tile kernel for `input` must refuse, with the reason.
std::optional<std::string> tile_kernel_refuses(const Params& params, Format input);
/// What every tile kernel declares; tile_n and splits are the caller's.
Arithmetic tile_arithmetic(const AttentionParams& params, std::int64_t tile_n, std::int64_t splits);

}  // namespace assay
