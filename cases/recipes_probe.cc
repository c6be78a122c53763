// Recipes of exact probes (probes.md 3): the right output is exactly representable, because a row's weights are powers
// of two on few chosen keys, the support, and zero elsewhere.
//
// Rows and keys have classes: row i of q=cover_row has 4 in channels a = i mod A and A + b, b = i / A, with A half of
// the channels; a key that is -256 but in its own two channels has logit 0 (scale 1) in the rows of its class, -1024
// where one of the two differs and -2048 elsewhere. exp(-1024) is zero in every format. All numbers fit e4m3.
#include <algorithm>

#include "cases/families.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kOn = 4, kOff = -256;
constexpr double kNever = -128;  // in every channel: with q=ones at least 2,048 below zero from 16 channels on

/// The two channels of a class.
struct Channels {
  std::size_t a, b;
};
Channels channels_of(std::int64_t wanted, std::size_t channels) {
  const std::size_t first = std::max<std::size_t>(1, channels / 2), second = std::max<std::size_t>(1, channels - first);
  const std::size_t n = static_cast<std::size_t>(wanted) % (first * second);
  return {n % first, std::min(channels - 1, first + n / first)};
}

void cover_row(const Field&, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  const auto [a, b] = channels_of(row.position, out.size());
  out[a] = out[b] = kOn;
}

void cover_key(const Field& f, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), kOff);
  const auto rows = static_cast<std::int64_t>(f.args[0]), run = static_cast<std::int64_t>(f.args[1]);
  const auto [a, b] = channels_of((row.position / run + row.head + 3 * row.batch) % rows, out.size());
  out[a] = out[b] = f.args[2] / (2 * kOn);
}

void diagonal(const Field& f, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), kOff);
  const std::int64_t own = row.position - static_cast<std::int64_t>(f.args[0]);
  for (const std::int64_t i : {own, own - 1}) {
    if (i < 0) continue;
    const auto [a, b] = channels_of(i, out.size());
    out[a] = out[b] = 0;
  }
}

void tile_powers(const Field& f, const Row& row, std::span<double> out) {
  const auto tile = static_cast<std::int64_t>(f.args[0]);
  Row tile_row = row;
  tile_row.position = row.position / tile;
  const std::int64_t start = tile_row.position * tile, keys = std::min(tile, row.length - start);
  const bool chosen = row.position - start == below(stream_of(f, tile_row).bits(0), keys);
  std::fill(out.begin(), out.end(), chosen ? 0.0 : kNever);
  if (!chosen) return;
  // The two lowest tiles are level, so that the weights 1, 1, 2, 4, ... add up to a power of two.
  const std::int64_t from_lowest = f.args[1] < 0 ? (row.length - 1) / tile - tile_row.position : tile_row.position;
  out[0] = (f.args[1] < 0 ? -f.args[1] : f.args[1]) * static_cast<double>(std::max<std::int64_t>(1, from_lowest));
}

/// Of 16 keys in the support, the first has logit 0; then keys above an edge and below one take turns.
enum class Side { kTop, kAbove, kBelow };
Side side_of(std::int64_t position) {
  return position % 16 == 0 ? Side::kTop : position % 2 == 0 ? Side::kAbove : Side::kBelow;
}

void weight_edges(const Field& f, const Row& row, std::span<double> out) {
  const bool seen = row.position < static_cast<std::int64_t>(f.args[0]);
  std::fill(out.begin(), out.end(), seen ? 0.0 : kOff);
  const Side side = side_of(row.position);
  if (!seen || side == Side::kTop) return;
  // Where numbers of that many fraction bits in [2^-6, 2^-6 9/8) round up or down, and half of 1e-4 away from it.
  constexpr double kAside = 0.5e-4;
  const int bits = static_cast<int>(f.args[1]);
  const std::int64_t edge = below(stream_of(f, row).bits(0), std::int64_t{1} << (bits - 3));
  const double weight = 0x1p-6 * (1 + static_cast<double>(2 * edge + 1) * power_of_two(-bits - 1));
  const double logit = log64(weight) * (side == Side::kAbove ? 1 - kAside : 1 + kAside);
  const double wanted = logit / (f.logit_scale == 0 ? 1 : f.logit_scale * kProbe);
  out[0] = round_to(f.format, wanted, Rounding::kNearestEven, Overflow::kSaturate);
  if (out.size() > 1) out[1] = wanted - out[0];
}

/// Channels in turn see the keys above an edge and those below one, so that errors of either sign show.
void edge_values(const Field&, const Row& row, std::span<double> out) {
  const Side side = side_of(row.position);
  for (std::size_t c = 0; c < out.size(); ++c) {
    const bool seen = side == (c % 2 == 0 ? Side::kAbove : Side::kBelow);
    out[c] = seen ? 1 + static_cast<double>(c / 2 % 7) : 0.0;
  }
}

bool in_stripe(const Field& f, const Row& row, std::size_t key) {
  const auto period = static_cast<std::int64_t>(f.args[0]);
  return (static_cast<std::int64_t>(key) + row.position + row.head) % period == 0;
}

void stripes(const Field& f, const Row& row, std::span<double> out) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = in_stripe(f, row, k) ? 1 : 0;
}

void score_stripes(const Field& f, const Row& row, std::span<double> out) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = in_stripe(f, row, k) ? 0 : f.args[1];
}

void part_powers(const Field& f, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), f.args[0] * static_cast<double>(std::max<std::int64_t>(1, row.position)));
}

}  // namespace

std::vector<Recipe> probe_recipes() {
  return {
      {"cover_row",
       {},
       "for q: 4 in the two channels of the row's class; see cover_key",
       cover_row,
       Fits::kVectors,
       false},
      {"cover_key",
       {{"rows", 1, 1, kMany, true}, {"run", 1, 1, kMany, true}, {"level", 0, -1e6, 1e6}},
       "for k with q=cover_row scale=1: key j has logit `level` in row (j / run + head + 3 batch) mod rows, below "
       "-1000 "
       "in all others",
       cover_key,
       Fits::kVectors,
       false},
      {"diagonal",
       {{"offset", 0, -kMany, kMany, true}},
       "for k with q=cover_row scale=1: key j has logit 0 in rows j - offset and j - offset - 1, below -1000 in others",
       diagonal,
       Fits::kVectors,
       false},
      {"tile_powers",
       {{"tile", 64, 1, kMany, true}, {"step", 1, -64, 64, true}},
       "for k with q=ones scale=0.6931472: one key per tile, each 2^step times the weight of the tile before (step < "
       "0: "
       "behind); the others below -1000",
       tile_powers,
       Fits::kVectors},
      {"weight_edges",
       {{"keys", 256, 1, kMany, true}, {"bits", 7, 3, 23, true}},
       "for k with q=probe scale=1: the first `keys` have logit 0, or a weight off a rounding edge of that many "
       "fraction "
       "bits by half of what a scale off by 1e-4 does; the others below -1000",
       weight_edges,
       Fits::kVectors},
      {"edge_values",
       {},
       "for v with k=weight_edges: even channels see the keys above an edge, odd ones those below",
       edge_values,
       Fits::kVectors,
       false},
      {"stripes",
       {{"period", 4, 1, kMany, true}},
       "bool mask: key j admitted in row i of head h where i + j + h is a multiple of period",
       stripes,
       Fits::kBoolMask,
       false},
      {"score_stripes",
       {{"period", 4, 1, kMany, true}, {"masked", -1e4, -1e30, 0}},
       "additive mask: 0 where `stripes` admits, else `masked`",
       score_stripes,
       Fits::kScoreMask,
       false},
      {"part_powers",
       {{"step", 1, -64, 64, true}},
       "for lse_parts with base=2: step times max(part, 1), so that the weights add up to a power of two",
       part_powers,
       Fits::kNumbers,
       false},
  };
}

}  // namespace assay
