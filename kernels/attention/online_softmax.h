// One row's pass over key tiles, FlashAttention-2 step for step: the part that the tile kernels share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/call.h"
#include "oracle/mma.h"

namespace assay {

/// Admissible keys [first, end) of a row by length, causality and window; empty if end <= first.
struct KeyRange {
  std::int64_t first = 0, end = 0;
  bool empty() const { return end <= first; }
};
KeyRange key_range(const AttentionCall& call, std::int64_t batch, std::int64_t query);

struct RowAt {
  std::int64_t batch, head, query;
  KeyRange keys;
};

/// What a row carries from tile to tile. The row sum is kept in four parts: in the accumulator layout of m16n8k16 thread t
/// of a quad owns columns 8 b + 2 t and 8 b + 2 t + 1.
struct RowState {
  float m = 0.0F;              ///< running maximum of the scores, in the score's own unit
  std::array<float, 4> l{};    ///< running sums of unrounded P
  std::vector<float> o;        ///< [dv, padded] unnormalised
  bool any = false;            ///< an admissible key was seen
};

/// Tiles of one call. Scores come from Hopper's block FMA. Without an additive mask the softmax scale is folded into the
/// exponential, P = exp2(fma(s, c, -fl(m c))) with c = fl32(|scale| log2 e), and s takes the scale's sign, exactly; with one,
/// x = fl(fl(s scale) + bias), P = exp2(fl(fl(x - m) log2 e)).
class TileSoftmax {
 public:
  TileSoftmax(const AttentionCall& call, std::int64_t tile_n);

  std::int64_t tile_n() const { return tile_n_; }
  /// Loads K and V of a query head's group; cheap if they are there already.
  void load_head(std::int64_t batch, std::int64_t head);
  /// q of one row, zero-padded to the MMA's K.
  std::vector<float> load_q(const RowAt& row) const;

  RowState start() const;
  /// S, mask, maximum, P, row sum, rescaling and P V of one tile.
  void step(RowState& state, const RowAt& row, const float* q, std::int64_t tile);
  /// Normalises O by 1 / l and gives the LSE in a base. False if the row is empty (no key, or every logit -inf).
  bool finish(RowState& state, LseBase base, float& lse) const;
  /// The declared output and LSE of an empty row; the mean of V is P = 1 on every key.
  void finish_empty(RowState& state, const RowAt& row, float& lse);

 private:
  void accumulate(RowState& state, std::int64_t tile, std::int64_t keys);

  const AttentionCall& call_;
  const MmaModel& model_;
  std::int64_t tile_n_;
  bool additive_;
  float c_, scale_;            ///< folded: both of |scale|
  std::int64_t loaded_ = -1;
  HeadMatrix k_, v_;
  std::vector<float> s_, p_;   ///< one row of a tile
  std::vector<std::uint8_t> keep_;
};

/// A case that a tile kernel for `input` must refuse, with the reason.
std::optional<std::string> tile_kernel_refuses(const Params& params, Format input);
/// What every tile kernel declares; tile_n and splits are the caller's.
Arithmetic tile_arithmetic(const AttentionParams& params, std::int64_t tile_n, std::int64_t splits);

}  // namespace assay
