// Recipes shaped like published facts about language models: outlier channels, massive activations, quiet sink values.
#include <algorithm>

#include "cases/families.h"

namespace assay {
namespace {

// A few key channels are tens of times larger than the rest, the same ones at every position: Liu et al., "KIVI", ICML
// 2024, and Hooper et al., "KVQuant", NeurIPS 2024.
void outlier_channel(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  const std::size_t channel = f.args[1] < 0 ? out.size() / 3 : static_cast<std::size_t>(f.args[1]) % out.size();
  out[channel] *= f.args[0];
}

// Sun et al., "Massive activations in large language models", COLM 2024: few values, thousands of times the median, in
// fixed channels of the first positions, nearly constant.
void massive(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  if (static_cast<double>(row.position) >= f.args[2]) return;
  const auto count = std::min(static_cast<std::size_t>(f.args[1]), out.size());
  for (std::size_t i = 0; i < count; ++i) out[(2 * i + 1) * out.size() / (2 * count)] = f.args[0];
}

// Xiao et al., "Efficient streaming language models with attention sinks", ICLR 2024: the first positions draw
// attention; their values are small, so that the attention does little.
void sink_values(const Field& f, const Row& row, std::span<double> out) {
  const bool sink = static_cast<double>(row.position) < f.args[1];
  fill_normal(stream_of(f, row), sink ? f.args[0] : 1.0, 0.0, out);
}

}  // namespace

std::vector<Recipe> model_recipes() {
  return {
      {"outlier_channel",
       {{"factor", 30, -kHuge, kHuge}, {"channel", -1, -1, kMany, true}},
       "normal; one channel (default: a third of the way) times factor",
       outlier_channel,
       Fits::kVectors},
      {"massive",
       {{"value", 448, -kHuge, kHuge}, {"channels", 2, 1, kMany, true}, {"positions", 1, 0, kMany, true}},
       "normal; a few evenly spaced channels of the first positions hold `value`, the same for q and k",
       massive,
       Fits::kVectors},
      {"sink_values",
       {{"factor", 0.01, -kHuge, kHuge}, {"positions", 1, 0, kMany, true}},
       "for v: normal; the first positions times factor",
       sink_values,
       Fits::kVectors},
  };
}

}  // namespace assay
