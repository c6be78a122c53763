// Recipes whose sums cancel: pairs of positions for P V, pairs of channels for Q K.
#include "cases/families.h"

namespace assay {
namespace {

void cancelling_pairs(const Field& f, const Row& row, std::span<double> out) {
  Row pair = row;
  pair.position = row.position / 2;
  fill_normal(stream_of(f, pair), row.position % 2 == 0 ? f.args[0] : -f.args[0], 0.0, out);
}

/// Channels [0, n) form pairs; the rest, at least half, are plain normal numbers that decide the logits.
std::size_t paired_channels(std::size_t channels) { return channels / 4 * 2; }

void twin_channels(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  for (std::size_t c = 0; c < paired_channels(out.size()); c += 2) out[c + 1] = out[c] = f.args[0] * out[c];
}

void cancelling_channels(const Field& f, const Row& row, std::span<double> out) {
  twin_channels(f, row, out);
  for (std::size_t c = 1; c < paired_channels(out.size()); c += 2) out[c] = -out[c];
}

}  // namespace

std::vector<Recipe> cancellation_recipes() {
  return {
      {"cancelling_pairs",
       {{"std", 1, -kHuge, kHuge}},
       "normal; the vector at an odd position is minus the one before it: flat rows of v = this sum to about 0",
       cancelling_pairs,
       Fits::kVectors},
      {"twin_channels",
       {{"factor", 1, -kHuge, kHuge}},
       "for q: normal; in the first half of the channels neighbours are equal and multiplied by factor",
       twin_channels,
       Fits::kVectors},
      {"cancelling_channels",
       {{"factor", 16, -kHuge, kHuge}},
       "for k with q=twin_channels: neighbours of opposite sign, so large products cancel exactly inside q.k",
       cancelling_channels,
       Fits::kVectors},
  };
}

}  // namespace assay
