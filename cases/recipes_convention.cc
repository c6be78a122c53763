// Recipes for the small tensors of conventions: ALiBi slopes, segment ids, lists of keys.
#include <bit>
#include <numeric>

#include "cases/families.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

// Press, Smith, Lewis, "Train short, test long", ICLR 2022: 2^(-8 (h + 1) / H). Their code for H that is no power of
// two: the slopes of the power of two n below it, then every other slope of 2 n.
void slopes(const Field& f, const Row&, std::span<double> out) {
  const std::size_t heads = out.size(), below = std::bit_floor(heads);
  const std::size_t own = f.args[0] == 0 ? heads : below;
  for (std::size_t h = 0; h < heads; ++h) {
    const double steps = h < own ? static_cast<double>(h + 1) : static_cast<double>(2 * (h - own) + 1) / 2;
    out[h] = exp2_64(-8 * steps / static_cast<double>(own));
  }
}

void segments(const Field& f, const Row& row, std::span<double> out) {
  out[0] = static_cast<double>(row.position / static_cast<std::int64_t>(f.args[0]));
}

/// A walk over the keys whose step has no factor in common with their number meets each key once.
void indices(const Field& f, const Row& row, std::span<double> out) {
  const auto keys = static_cast<std::int64_t>(f.args[0]);
  const Stream walk = stream_of(f, row), skip = stream_of(f, row, 1);
  std::int64_t step = 1 + below(walk.bits(0), keys), at = below(walk.bits(1), keys);
  while (std::gcd(step, keys) != 1) ++step;
  const double skipped[] = {-1, static_cast<double>(keys), info(f.format).max_finite, -info(f.format).max_finite};
  for (std::size_t n = 0; n < out.size(); ++n) {
    const std::uint64_t bits = skip.bits(static_cast<std::int64_t>(n));
    if (static_cast<std::int64_t>(n) >= keys || unit_uniform(bits) < f.args[1]) {
      out[n] = skipped[bits % 4];
    } else {
      out[n] = static_cast<double>(at);
      at = (at + step) % keys;
    }
  }
}

}  // namespace

std::vector<Recipe> convention_recipes() {
  return {
      {"slopes",
       {{"interleaved", 0, 0, 1, true}},
       "ALiBi slopes 2^(-8 (h + 1) / heads); interleaved: as ALiBi's code does where heads is no power of two",
       slopes,
       Fits::kHeads,
       false},
      {"segments",
       {{"length", 32, 1, kMany, true}},
       "segment ids: position / length",
       segments,
       Fits::kPositions,
       false},
      {"indices",
       {{"keys", 64, 1, kMany, true}, {"skip", 0.125, 0, 1}},
       "distinct keys below `keys`; with probability skip, and where none is left, -1 or out of range",
       indices,
       Fits::kKeyList},
  };
}

}  // namespace assay
