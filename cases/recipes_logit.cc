// Recipes that place logits. With q=probe, channels 0 and 1 of q are kProbe, so a key's logit is what its recipe put
// there.
//
// For a target t the key gets hi = rounded(t / (scale kProbe)) in channel 0 and the rounding's remainder in channel 1:
// scale (kProbe hi + kProbe lo) = t to about twice the precision of the format. The key's other channels are normal(1);
// they add noise scale std N(0, channels - 2) for q=probe(std), nothing for q=probe. A key of one channel has only hi.
// `ties` and `near_ties` need no cooperation: equal keys have equal logits under every q.
#include <algorithm>

#include "cases/families.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

void place_logit(const Field& f, const Row& row, double target, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  const double wanted = f.logit_scale == 0 ? 0.0 : target / (f.logit_scale * kProbe);
  const double hi = round_to(f.format, wanted, Rounding::kNearestEven, Overflow::kSaturate);
  out[0] = hi;
  if (out.size() > 1) out[1] = wanted - hi;
}

void probe(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[0], 0.0, out);
  std::fill_n(out.begin(), std::min<std::size_t>(2, out.size()), kProbe);
}

void ties(const Field& f, const Row& row, std::span<double> out) {
  Row any = row;
  any.position = 0;
  fill_normal(stream_of(f, any), f.args[0], 0.0, out);
}

void near_ties(const Field& f, const Row& row, std::span<double> out) {
  Row any = row;
  any.position = 0;
  fill_normal(stream_of(f, any), 1.0, 0.0, out);
  const Stream choice = stream_of(f, row, 1);
  if (unit_uniform(choice.bits(0)) >= f.args[0]) return;
  double& moved = out[static_cast<std::size_t>(below(choice.bits(1), f.extent))];
  moved = decode(f.format, next_up(f.format, encode(f.format, moved, Rounding::kNearestEven, Overflow::kSaturate)));
}

/// One key per tile has the tile's maximum `peak` (log2 units); the others lie 0.5 to 4 log2 units lower.
void tile_maxima(const Field& f, const Row& row, double peak, std::span<double> out) {
  const auto tile = static_cast<std::int64_t>(f.args[1]);
  Row tile_row = row;
  tile_row.position = row.position / tile;
  const std::int64_t start = tile_row.position * tile;
  const std::int64_t keys = std::min(tile, row.length - start);
  const bool is_peak = row.position - start == below(stream_of(f, tile_row, 1).bits(0), keys);
  const double lower = is_peak ? 0.0 : 0.5 + 3.5 * unit_uniform(stream_of(f, row, 2).bits(0));
  place_logit(f, row, kLn2 * (peak - lower), out);
}

void rising(const Field& f, const Row& row, std::span<double> out) {
  const auto tile = static_cast<std::int64_t>(f.args[1]);
  const std::int64_t after = (row.length - 1) / tile - row.position / tile;
  tile_maxima(f, row, f.args[2] - f.args[0] * static_cast<double>(after), out);
}

void falling(const Field& f, const Row& row, std::span<double> out) {
  const std::int64_t before = row.position / static_cast<std::int64_t>(f.args[1]);
  tile_maxima(f, row, f.args[2] - f.args[0] * static_cast<double>(before), out);
}

void logit_offset(const Field& f, const Row& row, std::span<double> out) {
  place_logit(f, row, f.args[0] + f.args[1] * unit_normal(stream_of(f, row, 1).bits(0)), out);
}

void ladder(const Field& f, const Row& row, std::span<double> out) {
  const auto low = static_cast<std::int64_t>(f.args[0]);
  const std::int64_t rungs = static_cast<std::int64_t>(f.args[1]) - low + 1;
  const double rung = power_of_two(static_cast<int>(low + row.position % rungs));
  place_logit(f, row, f.args[2] < 0 ? -rung : rung, out);
}

void attention_sink(const Field& f, const Row& row, std::span<double> out) {
  place_logit(f, row, static_cast<double>(row.position) < f.args[1] ? f.args[0] : 0.0, out);
}

}  // namespace

std::vector<Recipe> logit_recipes() {
  const std::vector<RecipeArg> maxima{{"step", 4, 0, 1e6}, {"tile", 64, 1, kMany, true}, {"top", 0, -1e6, 1e6}};
  return {
      {"probe",
       {{"std", 0, 0, kHuge}},
       "for q: channels 0 and 1 are 64, the others normal(std); logits become the key's",
       probe,
       Fits::kVectors},
      {"ties",
       {{"std", 1, 0, kHuge}},
       "one normal vector at every position: all logits of a row are equal",
       ties,
       Fits::kVectors},
      {"near_ties",
       {{"p", 0.5, 0, 1}},
       "as ties, but with probability p one channel is one step of the format higher",
       near_ties,
       Fits::kVectors},
      {"rising", maxima,
       "for k with q=probe: each tile's largest logit is `step` log2 units above the tile before; last = top", rising,
       Fits::kVectors},
      {"falling", maxima,
       "for k with q=probe: each tile's largest logit is `step` log2 units below the tile before; first = top", falling,
       Fits::kVectors},
      {"logit_offset",
       {{"offset", -20, -1e6, 1e6}, {"std", 1, 0, 1e6}},
       "for k with q=probe: logits offset + std N(0,1); all negative at -20, -60, -1e3, -5e4",
       logit_offset,
       Fits::kVectors},
      {"logit_ladder",
       {{"lo", -3, -100, 16, true}, {"hi", 8, -100, 16, true}, {"sign", 1, -1, 1}},
       "for k with q=probe: logits sign 2^e, e = lo ... hi in turn",
       ladder,
       Fits::kVectors,
       true,
       true},
      {"range_ladder",
       {{"lo", 10, -100, 100, true}, {"hi", 40, -100, 100, true}, {"sign", 1, -1, 1}},
       "the same without a limit: logits beyond the range of a fused scale",
       ladder,
       Fits::kVectors,
       true,
       true,
       true},
      {"attention_sink",
       {{"logit", 10, -1e6, 1e6}, {"keys", 1, 0, kMany, true}},
       "for k with q=probe(std): the first keys of each sequence have this logit, the others 0",
       attention_sink,
       Fits::kVectors},
  };
}

}  // namespace assay
