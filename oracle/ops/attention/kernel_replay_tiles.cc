// The tiles of a split: logits, maximum, weights, P V, state.
#include <algorithm>
#include <cmath>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/mma.h"
#include "oracle/ops/attention/kernel_replay_state.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 0x1.715476p+0F;
constexpr std::int64_t kUsualTile = 64;

float exp2_f32(double y) { return static_cast<float>(exp2_64(y)); }
float f32(double x) { return static_cast<float>(x); }

/// An fp32 number keeps fp64's digits here, not its range.
double in_range(double x) {
  return std::abs(x) > kMax32 ? std::copysign(std::numeric_limits<double>::infinity(), x) : x;
}

float larger(float a, float b) { return a > b || a != a ? a : b; }

/// The smallest fp32 number is 2^-149, and half of it rounds to 0.
constexpr double kNoWeight = -150;

/// o += p v.
ASSAY_HOT void add_scaled(double p, const float* v, std::size_t count, double* o) {
  ASSAY_VECTORIZE
  for (std::size_t c = 0; c < count; ++c) o[c] += p * static_cast<double>(v[c]);
}

float power(float alpha, int n) { return n == 0 ? 1.0F : n == 1 ? alpha : alpha * alpha; }

}  // namespace

/// x of the keys of a tile: the score with the scale's sign where the scale is folded, else the logit.
void KernelReplay::logits(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end, State& s) const {
  const auto n = static_cast<std::size_t>(end - first);
  s.first = first;
  s.x.assign(n, -kInf);
  s.keep.assign(n, 0);
  const float cap = params_.softcap;
  for (std::size_t c = 0; c < n; ++c) {
    ReplayKey key = row.keys[static_cast<std::size_t>(first) + c];
    if (!key.admissible && !d.masked_too) continue;
    s.keep[c] = 1;
    if (d.score_sum != Format::kFp32) key.score = s.score[static_cast<std::size_t>(first) + c];
    key.score = d.score_store == Format::kFp32 ? key.score : stored(d.score_store, key.score);
    const double factor = key.scale_q * key.k_scale;
    if (d.logit) {
      const double x = d.logit(row.at, key);
      s.x[c] = f32(on_score_ ? x : row.scale > 0 ? x / row.scale : 0.0);
    } else if (!on_score_) {
      s.x[c] = f32(factor < 0 ? -key.score : factor > 0 ? key.score : 0.0);
    } else {
      float x = f32(key.score) * f32(factor * d.scale);
      if (cap > 0) x = cap * f32(tanh64(static_cast<double>(x / cap)));
      if (params_.alibi != Alibi::kNone) x += f32(key.alibi);
      if (params_.data_mask == DataMask::kAdditive) x += f32(key.additive);
      s.x[c] = x;
    }
  }
}

/// P of the tile relative to `frame`, and its sum added to l.
void KernelReplay::weigh(const Row& row, const Deviation& d, float frame, State& s, std::array<float, 4>& l) const {
  const Format format = d.p_format.value_or(a_.p_format);
  const bool narrow = bytes_per_element(format) == 1;
  const auto rounded = [&](double p) {
    if (format == Format::kFp32) return p;
    return round_to(format, p * d.p_unit, d.p_truncated ? Rounding::kTowardZero : Rounding::kNearestEven,
                    narrow ? Overflow::kSaturate : Overflow::kIeee) /
           d.p_unit;
  };
  const bool sum_rounded = (a_.row_sum_of == RowSumOf::kRoundedP) != d.other_sum;
  const float unit = on_score_ ? kLog2e : f32(static_cast<double>(row.unit) * d.scale);
  const float shift = frame * unit;
  const float offset = f32(exp2_64(a_.p_offset));
  s.p.assign(s.x.size(), 0.0F);
  for (std::size_t c = 0; c < s.x.size(); ++c) {
    if (!s.keep[c]) continue;
    const float y = on_score_
                        ? (s.x[c] - frame) * unit
                        : f32(static_cast<double>(s.x[c]) * static_cast<double>(unit) - static_cast<double>(shift));
    if (!d.exp2 && static_cast<double>(y) <= kNoWeight) continue;
    float p = d.exp2 ? f32(d.exp2(static_cast<double>(y))) : exp2_f32(static_cast<double>(y));
    if (d.weight_gain) p *= f32(d.weight_gain(static_cast<std::int64_t>(c)));
    p *= offset;
    const double tilde = rounded(static_cast<double>(p));
    s.p[c] = f32(tilde);
    float& lane = l[a_.row_sum_tree == RowSumTree::kQuad ? c % 8 / 2 : 0];
    lane += sum_rounded ? f32(tilde) : p;
    if (d.l_key != Format::kFp32) lane = f32(stored(d.l_key, static_cast<double>(lane)));
  }
}

/// o += P V of the tile: 16 bits and scalars in fp64, 8 bits as the block-FMA model has it.
void KernelReplay::add_values(const Row& row, const Deviation& d, const State& s, std::vector<double>& o) const {
  const auto dv = static_cast<std::size_t>(params_.dim_v);
  const auto first = static_cast<std::size_t>(s.first);
  const bool by_key = params_.descale == Descale::kBlock;
  const std::size_t block =
      a_.pv == Accumulate::kFp32 ? 1 : static_cast<std::size_t>(block_model(a_.pv, params_.input).block_k);
  if (narrow_) {
    std::vector<float> sum(dv, 0.0F);
    const bool promoted = a_.promote_n > 0 && !d.one_chain;
    if (!promoted)
      for (std::size_t c = 0; c < dv; ++c) sum[c] = f32(o[c]);
    mma_tile(block_model(a_.pv, params_.input), params_.input, 1, static_cast<int>(dv), static_cast<int>(s.p.size()),
             {s.p.data(), static_cast<std::int64_t>(s.p.size()), 1},
             {row.head->v.data() + first * dv, params_.dim_v, 1}, sum.data(), params_.dim_v);
    for (std::size_t c = 0; c < dv; ++c) o[c] = static_cast<double>(promoted ? f32(o[c]) + sum[c] : sum[c]);
    return;
  }
  for (std::size_t j = 0; j < s.p.size(); ++j) {
    const float* v = row.head->v.data() + (first + j) * dv;
    if (s.keep[j]) {
      double p = static_cast<double>(s.p[j]);
      if (by_key) p *= value_factor(row, d, s.first + static_cast<std::int64_t>(j));
      if (p != 0 || !row.head->finite) add_scaled(p, v, dv, o.data());
    }
    if (d.o_key != Format::kFp32)
      for (double& x : o) x = stored(d.o_key, x);
    if (d.o_block != Format::kFp32 && ((j + 1) % block == 0 || j + 1 == s.p.size()))
      for (double& x : o) x = stored(d.o_block, x);
  }
}

double KernelReplay::value_factor(const Row& row, const Deviation& d, std::int64_t key) const {
  if (d.value_factor) return d.value_factor(row.at, key);
  return problem_.has_value_factor() ? problem_.value_factor(row.at, key) : 1.0;
}

void KernelReplay::own_step(const Row& row, const Deviation& d, float tile_max, State& s) const {
  if (tile_max == -kInf) return;
  std::array<float, 4> l_tile{};
  weigh(row, d, tile_max, s, l_tile);
  const float m = larger(s.m, tile_max), unit = on_score_ ? kLog2e : f32(static_cast<double>(row.unit) * d.scale);
  const float alpha = s.m == -kInf ? 0.0F : exp2_f32((s.m - m) * unit), beta = exp2_f32((tile_max - m) * unit);
  const float before = s.sum();
  for (std::size_t t = 0; t < 4; ++t) s.l[t] = power(alpha, d.l_power) * s.l[t] + beta * l_tile[t];
  s.m = m;
  std::vector<double> pv(s.o.size(), 0.0);
  add_values(row, d, s, pv);
  const bool normalised = a_.normalize == Normalize::kEveryStep;
  const float kept = normalised && !d.l_left_out ? before * alpha : power(alpha, d.o_power);
  const float added = d.tile_frame_kept ? 1.0F : beta;
  for (std::size_t c = 0; c < pv.size(); ++c) {
    s.o[c] = static_cast<double>(kept) * s.o[c] + static_cast<double>(added) * pv[c];
    if (normalised) s.o[c] /= static_cast<double>(s.sum());
  }
}

void KernelReplay::step(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end, State& s) const {
  logits(row, d, first, end, s);
  float tile_max = -kInf;
  for (std::size_t c = 0; c < s.x.size(); ++c)
    if (s.keep[c]) tile_max = larger(tile_max, s.x[c]), s.any = true;
  if (a_.max_policy == MaxPolicy::kOwnTile) return own_step(row, d, tile_max, s);
  const float unit = on_score_ ? kLog2e : f32(static_cast<double>(row.unit) * d.scale);
  const float before = s.m;
  float m = d.frame == Deviation::Frame::kTileOnly ? tile_max : larger(before, tile_max);
  const int lazy = d.lazy > 0 ? d.lazy : a_.max_policy == MaxPolicy::kLazy ? a_.lazy_threshold : 0;
  if (lazy > 0 && before != -kInf && (m - before) * unit <= static_cast<float>(lazy)) m = before;
  s.m = m;
  const float max = m == -kInf ? 0.0F : m;
  const float alpha = before == -kInf ? 0.0F : exp2_f32((before - max) * unit);
  for (float& lane : s.l) lane *= power(alpha, d.l_power);
  weigh(row, d, d.frame == Deviation::Frame::kStale && before != -kInf ? before : max, s, s.l);
  if (d.l_tile != Format::kFp32)
    for (float& lane : s.l) lane = f32(stored(d.l_tile, static_cast<double>(lane)));
  const double rescale = stored(d.alpha_of_o, static_cast<double>(power(alpha, d.o_power)));
  for (double& o : s.o) o = narrow_ ? static_cast<double>(f32(o * rescale)) : in_range(o * rescale);
  add_values(row, d, s, s.o);
  if (d.o_tile != Format::kFp32)
    for (double& o : s.o) o = stored(d.o_tile, o);
}

/// The keys [first, end) as one online softmax.
KernelReplay::Part KernelReplay::walk(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end) const {
  State s;
  s.o.assign(static_cast<std::size_t>(params_.dim_v), 0.0);
  if (d.score_sum != Format::kFp32) sum_scores(row, d, s.score);
  const std::int64_t tile = a_.max_policy == MaxPolicy::kGlobal ? std::max<std::int64_t>(1, end - first)
                            : a_.tile_n > 0                     ? a_.tile_n
                                                                : kUsualTile;
  // Tiles without a key of the row change nothing, unless the deviation makes them.
  const bool visited = d.masked_too || d.frame == Deviation::Frame::kTileOnly;
  const std::int64_t from = std::max(first, visited ? row.first_visited : row.first);
  const std::int64_t to = std::min(end, visited ? row.end_visited : row.end);
  if (from < to) {
    const std::int64_t low = (from - first) / tile, high = (to - 1 - first) / tile;
    for (std::int64_t n = 0; n <= high - low; ++n) {
      const std::int64_t at = first + (a_.tile_order == TileOrder::kBackward ? high - n : low + n) * tile;
      step(row, d, at, std::min(at + tile, end), s);
    }
  }
  const bool split = a_.splits != 1 || d.merges_one;
  const double sink = d.sink ? d.sink(row.sink) : row.sink;
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  return finish(row, d, s, split && !d.sink_in_parts ? kNone : sink, split);
}

}  // namespace assay
