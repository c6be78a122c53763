// The family of structures that inference tries, and replays without bounds.
#include "oracle/ops/attention/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/exp64.h"
#include "oracle/ops/attention/weight_replay.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr std::array<int, 10> kTiles = {128, 64, 256, 32, 192, 176, 112, 96, 80, 16};
constexpr std::array<int, 10> kSplits = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};

ASSAY_HOT void add_product(double p, const double* v, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += p * v[c];
}

}  // namespace

std::vector<Arithmetic> candidate_structures(const AttentionParams& params, const Arithmetic& declared,
                                             std::int64_t longest) {
  const bool narrow = info(params.input).storage_bits == 8;
  std::vector<Format> formats{declared.p_format};
  if (!declared.p_known) formats = {params.input, Format::kFp32};
  std::vector<MaxPolicy> policies{declared.max_policy};
  if (declared.max_policy == MaxPolicy::kUnknown) policies = {MaxPolicy::kGlobal, MaxPolicy::kEveryTile};
  std::vector<TileOrder> orders{declared.tile_order};
  if (declared.tile_order == TileOrder::kUnknown) orders = {TileOrder::kForward, TileOrder::kBackward};
  std::vector<int> tiles{declared.tile_n}, splits{declared.splits}, offsets{declared.p_offset};
  const int all = static_cast<int>((longest + 15) / 16 * 16);
  if (declared.tile_n == 0) {
    tiles = {all};
    for (int tile : kTiles)
      if (tile < longest) tiles.push_back(tile);
  }
  if (declared.splits == 0) splits.assign(kSplits.begin(), kSplits.end());
  if (narrow && !declared.p_known) offsets = {0, 8};

  std::vector<Arithmetic> candidates;
  for (Format format : formats) {
    Arithmetic a = declared;
    a.p_known = true;
    a.p_format = format;
    if (format == Format::kFp32) {
      candidates.push_back(a);  // nothing else shows
      continue;
    }
    for (int split : splits)
      for (MaxPolicy policy : policies)
        for (int tile : tiles)
          for (TileOrder order : orders)
            for (int offset : offsets) {
              a.splits = split, a.max_policy = policy, a.tile_n = tile, a.tile_order = order, a.p_offset = offset;
              const bool one_tile = tile >= longest || policy == MaxPolicy::kGlobal;
              if (one_tile && declared.tile_order == TileOrder::kUnknown && order != orders[0]) continue;
              if (policy == MaxPolicy::kGlobal && (split > 1 || (declared.tile_n == 0 && tile != all))) continue;
              if (static_cast<std::int64_t>(split - 1) * tile >= longest) continue;  // an empty split
              // One tile per row is a global maximum.
              if (policy == MaxPolicy::kEveryTile && tile >= longest && policies.size() > 1) continue;
              candidates.push_back(a);
            }
  }
  return candidates;
}

std::string structure_in_words(const Arithmetic& s, std::int64_t longest) {
  const std::string p = fmt::format("P in {}", info(s.p_format).name);
  if (s.p_format == Format::kFp32) return p;
  std::string text = s.max_policy == MaxPolicy::kGlobal || s.tile_n >= longest
                         ? std::string("one maximum per row")
                         : fmt::format("tiles of {} from {}", s.tile_n,
                                       s.tile_order == TileOrder::kForward ? "first to last" : "last to first");
  if (s.max_policy == MaxPolicy::kLazy)
    text += fmt::format(" with a maximum raised by more than 2^{} only", s.lazy_threshold);
  if (s.max_policy == MaxPolicy::kOwnTile) text += " with a maximum each";
  text += ", " + p;
  if (s.p_offset != 0) text += fmt::format(" times 2^{}", s.p_offset);
  text += fmt::format(", {} split{}", s.splits, s.splits == 1 ? "" : "s");
  return s.split_at > 0 ? text + fmt::format(" cut at key {}", s.split_at) : text;
}

std::vector<std::uint64_t> predicted_codes(const RowAnalysis& row, const std::vector<double>& depth,
                                           const Arithmetic& structure, Format output) {
  const auto dv = static_cast<std::size_t>(row.operands->dim_v);
  const std::vector<double> none(row.keys.size(), 0.0);
  const WalkInput input{row.keys, depth, none, row.operands->keys};
  Arithmetic walked = structure;
  if (structure.p_format == Format::kFp32)
    walked.tile_n = 1 << 30, walked.splits = 1, walked.max_policy = MaxPolicy::kGlobal;
  const auto walks = walk_tiles(input, walked, 0);
  if (!walks) return {};
  const PositiveRounder round(structure.p_format);
  WeightReplay weights;
  std::vector<double> sum(dv, 0.0);
  double l = row.sink_p > 0 ? exp64(std::min(700.0, row.sink - row.max_logit)) : 0;
  const double unit = exp2_64(structure.p_offset);
  for (const SplitWalk& walk : *walks) {
    replay_weights(input, walk, row.max_logit, structure.p_offset, {}, round, weights);
    const double scale = exp64(-walk.depth) / unit;
    for (const TileStep& step : walk.steps) {
      const double factor = step.weight * scale;
      for (std::size_t j = step.begin; j < step.end; ++j) {
        l += weights.p[j] * factor;
        add_product(weights.tilde[j] * factor, row.operands->v.data() + static_cast<std::size_t>(row.keys[j]) * dv, dv,
                    sum.data());
      }
    }
  }
  const double v_scale = row.value_factor.empty() ? 1 : row.value_factor[0];
  std::vector<std::uint64_t> codes(dv);
  for (std::size_t c = 0; c < dv; ++c) codes[c] = encode(output, sum[c] * v_scale / l);
  return codes;
}

}  // namespace assay
