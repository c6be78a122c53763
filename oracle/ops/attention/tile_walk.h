// The running maximum of a row from key tile to key tile, replayed from a declared structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "oracle/arithmetic.h"

namespace assay {

/// One key tile of one split, in the order the kernel takes them. Depths D = x_max - x count from the row's largest
/// logit.
struct TileStep {
  std::size_t begin = 0, end = 0;  ///< its keys, as indices into the row's keys
  std::int32_t start = 0;          ///< its first position, admissible or not: blocks and lanes are counted from there
  double depth = 0;                ///< depth of the maximum M_t that its P is relative to
  std::size_t top = 0;             ///< a key of that depth
  double error = 0;                ///< how far the kernel's M_t may be off
  double carried = 0;              ///< depth of the maximum that O and l are relative to after the tile
  bool event = false;          ///< that maximum may have risen here: O and l were multiplied by an alpha that is not 1
  double weight = 1;           ///< A_t = e^(M_t - M_T), what the tile's P are multiplied by until the end
  double weight_error = 0;     ///< the kernel's product of alphas is A_t e^eta, |eta| at most this
  double weight_rounding = 0;  ///< the part of it that is not the two maxima's
};

struct SplitWalk {
  std::vector<TileStep> steps;
  double depth = 0;  ///< of M_T
  double error = 0;  ///< how far the kernel's M_T may be off
};

/// What the walk needs of a row.
struct WalkInput {
  std::span<const std::int32_t> keys;  ///< ascending
  std::span<const double> depth;
  std::span<const double> logit_error;  ///< of the kernel's own logits, before any maximum
  std::int64_t sequence = 0;            ///< kv length: where the splits are cut
};

/// Splits without an admissible key are left out. `exponential`: relative error of one. Tiles start at multiples of
/// tile_n, a split is ceil(ceil(sequence / tile_n) / splits) of them; with split_at, the first of two ends there and the
/// second's tiles start at multiples of tile_n behind it. Nothing if a decision (to raise a lazy maximum) is too close
/// to call.
std::optional<std::vector<SplitWalk>> walk_tiles(const WalkInput& row, const Arithmetic& arithmetic,
                                                 double exponential);

}  // namespace assay
