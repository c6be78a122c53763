// Maxima, events and factors of every tile.
//
// The kernel's maximum of a tile is the largest of its computed logits x_j + e_j, |e_j| <= E_j, so it lies between
// max(x_j - E_j) and max(x_j + E_j); so does a running maximum over all keys seen. Factor of a tile's P until the end:
// the product of later alphas, e^(M_t - M_T) in exact arithmetic of the kernel's own maxima, hence A_t up to
//   error_t + error_T                  both maxima
//   4u (M_t - M_T)                     of each exponent (M_old - M_new) c: c, the subtraction, the product; they add up
//   eps_ex2 per event after the tile   (and one for beta where each tile has its own maximum)
// Without a possible event after the tile the factor is exactly 1.
#include "oracle/ops/attention/tile_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/budget.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 0x1.71547652b82fep0;

/// Depth of a maximum and the ends of where the kernel's own may lie; low is the larger logit.
struct Maximum {
  double depth = kInf, low = kInf, high = kInf;
  std::size_t key = 0;  ///< of that depth
  double error() const { return depth < kInf ? std::max(depth - low, high - depth) : 0; }
  void join(const Maximum& other) {
    if (other.depth < depth) depth = other.depth, key = other.key;
    low = std::min(low, other.low);
    high = std::min(high, other.high);
  }
};

Maximum maximum(const WalkInput& row, std::size_t begin, std::size_t end) {
  Maximum m;
  for (std::size_t j = begin; j < end; ++j)
    m.join({row.depth[j], row.depth[j] - row.logit_error[j], row.depth[j] + row.logit_error[j], j});
  return m;
}

/// The tiles of keys [begin, end), in key order, counted from position `origin`.
std::vector<TileStep> cut(const WalkInput& row, std::size_t begin, std::size_t end, int tile_n, std::int32_t origin) {
  std::vector<TileStep> steps;
  for (std::size_t j = begin; j < end;) {
    TileStep& step = steps.emplace_back();
    step.begin = j;
    const std::int32_t tile = (row.keys[j] - origin) / tile_n;
    step.start = origin + tile * tile_n;
    while (j < end && (row.keys[j] - origin) / tile_n == tile) ++j;
    step.end = j;
  }
  return steps;
}

/// Whether a lazy maximum stays where it is when a tile's own is `tile`: the kernel compares (tile - M) c with the
/// threshold.
std::optional<bool> stays(const Maximum& before, const Maximum& tile, int threshold) {
  const double rise = (before.depth - tile.depth) * kLog2E;
  const double doubt = (before.error() + tile.error()) * kLog2E * 1.01 + 8 * kU32 * (std::abs(rise) + threshold);
  if (std::abs(rise - threshold) <= doubt) return std::nullopt;
  return rise < threshold;
}

bool walk(const WalkInput& row, const Arithmetic& arithmetic, double exponential, SplitWalk& split) {
  if (arithmetic.tile_order == TileOrder::kBackward) std::reverse(split.steps.begin(), split.steps.end());
  const bool own = arithmetic.max_policy == MaxPolicy::kOwnTile;
  Maximum running;
  if (arithmetic.max_policy == MaxPolicy::kGlobal)
    for (const TileStep& step : split.steps) running.join(maximum(row, step.begin, step.end));
  for (TileStep& step : split.steps) {
    const Maximum tile = maximum(row, step.begin, step.end);
    const bool first = running.depth == kInf;
    switch (arithmetic.max_policy) {
      case MaxPolicy::kLazy: {
        const std::optional<bool> stay = first ? false : stays(running, tile, arithmetic.lazy_threshold);
        if (!stay) return false;
        step.event = !first && !*stay;
        if (!*stay) running = tile;
        break;
      }
      case MaxPolicy::kGlobal: break;
      case MaxPolicy::kEveryTile:
      case MaxPolicy::kOwnTile:
      case MaxPolicy::kUnknown: step.event = !first && tile.low <= running.high; running.join(tile);
    }
    step.carried = running.depth;
    step.depth = own ? tile.depth : running.depth;
    step.top = own ? tile.key : running.key;
    step.error = own ? tile.error() : running.error();
  }
  split.depth = running.depth;
  split.error = running.error();
  double exponentials = own && split.steps.size() > 1 ? 1 : 0;
  for (std::size_t n = split.steps.size(); n-- > 0;) {
    TileStep& step = split.steps[n];
    const double below = step.depth - split.depth;
    step.weight = exp64(-below);
    if (exponentials > 0) {
      step.weight_rounding = 4 * kU32 * (below + step.error + split.error) + exponentials * exponential;
      step.weight_error = step.error + split.error + step.weight_rounding;
    }
    if (step.event) exponentials += 1;
  }
  return true;
}

}  // namespace

std::optional<std::vector<SplitWalk>> walk_tiles(const WalkInput& row, const Arithmetic& arithmetic,
                                                 double exponential) {
  const std::int64_t tiles = (row.sequence + arithmetic.tile_n - 1) / arithmetic.tile_n;
  const std::int64_t per_split = (tiles + arithmetic.splits - 1) / arithmetic.splits;
  const int split_at = arithmetic.split_at;
  const auto split_of = [&](std::int32_t key) {
    return split_at > 0 ? std::int64_t{key >= split_at} : key / arithmetic.tile_n / per_split;
  };
  std::vector<SplitWalk> splits;
  for (std::size_t j = 0; j < row.keys.size();) {
    const std::int64_t id = split_of(row.keys[j]);
    std::size_t end = j;
    while (end < row.keys.size() && split_of(row.keys[end]) == id) ++end;
    SplitWalk& split = splits.emplace_back();
    split.steps = cut(row, j, end, arithmetic.tile_n, id == 1 && split_at > 0 ? split_at : 0);
    if (!walk(row, arithmetic, exponential, split)) return std::nullopt;
    j = end;
  }
  return splits;
}

}  // namespace assay
