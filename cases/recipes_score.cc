// Recipes for rows of scores: patterns along the last axis, one row at a time (softmax's x, additive masks).
#include <algorithm>

#include "cases/families.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// One score per tile has the tile's maximum; the others lie 0.5 to 4 log2 units lower.
void score_rising(const Field& f, const Row& row, std::span<double> out) {
  const auto tile = static_cast<std::size_t>(f.args[1]), tiles = (out.size() + tile - 1) / tile;
  const Stream peaks = stream_of(f, row), lower = stream_of(f, row, 1);
  for (std::size_t j = 0; j < out.size(); ++j) {
    const std::size_t t = j / tile, in_tile = std::min(tile, out.size() - t * tile);
    const bool is_peak = j % tile == static_cast<std::size_t>(below(peaks.bits(static_cast<std::int64_t>(t)),
                                                                    static_cast<std::int64_t>(in_tile)));
    const double peak = f.args[2] - f.args[0] * static_cast<double>(tiles - 1 - t);
    out[j] = kLn2 * (is_peak ? peak : peak - 0.5 - 3.5 * unit_uniform(lower.bits(static_cast<std::int64_t>(j))));
  }
}

void score_ladder(const Field& f, const Row& row, std::span<double> out) {
  const auto low = static_cast<std::int64_t>(f.args[0]);
  const std::int64_t rungs = static_cast<std::int64_t>(f.args[1]) - low + 1;
  for (std::size_t j = 0; j < out.size(); ++j) {
    const double rung = power_of_two(static_cast<int>(low + (row.position + static_cast<std::int64_t>(j)) % rungs));
    out[j] = f.args[2] < 0 ? -rung : rung;
  }
}

void score_near_ties(const Field& f, const Row& row, std::span<double> out) {
  const double value = round_to(f.format, f.args[0], Rounding::kNearestEven, Overflow::kSaturate);
  const double above = decode(f.format, next_up(f.format, encode(f.format, value)));
  const Stream choice = stream_of(f, row);
  for (std::size_t j = 0; j < out.size(); ++j)
    out[j] = unit_uniform(choice.bits(static_cast<std::int64_t>(j))) < f.args[1] ? above : value;
}

void score_peak(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[1], 0.0, out);
  out[static_cast<std::size_t>(below(stream_of(f, row, 1).bits(0), static_cast<std::int64_t>(out.size())))] = f.args[0];
}

}  // namespace

std::vector<Recipe> score_recipes() {
  return {
      {"score_rising",
       {{"step", 4, -1e6, 1e6}, {"tile", 64, 1, kMany, true}, {"top", 0, -1e6, 1e6}},
       "each tile's largest score is `step` log2 units above the tile before; last = top; step < 0: below",
       score_rising,
       Fits::kScoreMask},
      {"score_ladder",
       {{"lo", -3, -100, 16, true}, {"hi", 8, -100, 16, true}, {"sign", 1, -1, 1}},
       "scores sign 2^e, e = lo ... hi in turn, one further in each row",
       score_ladder,
       Fits::kScoreMask,
       false,
       true},
      {"score_near_ties",
       {{"value", 1, -kHuge, kHuge}, {"p", 0.5, 0, 1}},
       "every score is `value`, with probability p one step of the format higher",
       score_near_ties,
       Fits::kScoreMask},
      {"score_peak",
       {{"peak", 20, -kHuge, kHuge}, {"std", 1, 0, kHuge}},
       "normal(std), but one score of each row is `peak`",
       score_peak,
       Fits::kScoreMask},
  };
}

}  // namespace assay
