// Row sums: chains of additions, rescaled from tile to tile.
#include "oracle/ops/attention/row_sum.h"

#include <array>

#include "oracle/budget.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

/// Below it a weight, whatever its error (tier.cc: less than e^50), is under 2^-126 in the kernel. Rounding to nearest
/// loses at most what is added, which the caller counts as flushed.
constexpr double kNothing = 0x1p-200;

/// Chains with the sum of the magnitudes of all rounded results, both in the unit of the current maximum.
struct Chains {
  std::array<double, 4> sum{};
  double rounded = 0;

  void add(std::size_t lane, double p) {
    sum[lane] += p;
    if (p >= kNothing) rounded += sum[lane];
  }
  double total() const { return (sum[0] + sum[2]) + (sum[1] + sum[3]); }
  void scale(double alpha) {
    for (double& s : sum) s *= alpha;
    rounded *= alpha;
  }
};

}  // namespace

double row_sum_error(const SplitWalk& split, std::span<const std::int32_t> keys, std::span<const double> p,
                     const Arithmetic& arithmetic) {
  const bool own = arithmetic.max_policy == MaxPolicy::kOwnTile, quad = arithmetic.row_sum_tree == RowSumTree::kQuad;
  Chains all;
  double carried = 0, n = 0, events = 0;
  for (const TileStep& step : split.steps) {
    n += static_cast<double>(step.end - step.begin);
    if (step.event) {
      // alpha times every part.
      all.scale(exp64(step.carried - carried));
      all.rounded += all.total();
      ++events;
    }
    Chains tile;
    Chains& into = own ? tile : all;
    for (std::size_t j = step.begin; j < step.end; ++j)
      into.add(quad ? static_cast<std::size_t>((keys[j] - step.start) % 8 / 2) : 0, p[j]);
    if (own) {
      // l = alpha l + beta l_tile, by parts or after the shuffles of the tile's own sum (two additions).
      const double beta = exp64(step.carried - step.depth);
      all.rounded += beta * (tile.rounded + 3 * tile.total());
      for (std::size_t lane = 0; lane < 4; ++lane) all.sum[lane] += beta * tile.sum[lane];
      all.rounded += all.total();
    }
    carried = step.carried;
  }
  const double total = all.total();
  const bool known = arithmetic.row_sum_tree == RowSumTree::kSequential || (quad && arithmetic.tile_n % 8 == 0);
  if (!known) return gamma32(n + events + 2 + (own ? static_cast<double>(split.steps.size()) + 1 : 0));
  // The shuffles at the end, or the one chain's last additions.
  return total > 0 ? kU32 * (all.rounded / total + 2) : 0;
}

}  // namespace assay
