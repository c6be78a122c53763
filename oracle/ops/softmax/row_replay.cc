// The recurrence in fp32, step by step; a row in two passes is one tile.
#include "oracle/ops/softmax/row_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;

float f32(double x) { return static_cast<float>(x); }
float stored(Format format, float x) {
  return format == Format::kFp32 ? x : f32(round_to(format, static_cast<double>(x)));
}

}  // namespace

SoftmaxReplay::SoftmaxReplay(const Problem& problem, const Arithmetic& declared) : problem_(problem) {
  const SoftmaxParams& p = problem_.params();
  on_score_ = declared.scale_form != ScaleForm::kFolded || p.data_mask == DataMask::kAdditive;
  quad_ = declared.row_sum_tree == RowSumTree::kQuad;
  const bool one = declared.max_policy == MaxPolicy::kGlobal;
  tile_ = std::max<std::int64_t>(1, one ? p.n : declared.tile_n > 0 ? declared.tile_n : p.steps > 0 ? p.steps : p.n);
}

RowOutput SoftmaxReplay::row(const SoftmaxRow& row, const std::vector<std::int32_t>& finite,
                             const SoftmaxDeviation& d) const {
  const SoftmaxParams& p = problem_.params();
  std::vector<float> x;
  const double size = std::abs(static_cast<double>(p.scale));
  for (const std::int32_t i : finite) {
    const auto at = static_cast<std::size_t>(i);
    const double linear = row.linear[at] * (on_score_ ? d.scale : size > 0 ? 1 / size : 0);
    x.push_back(f32(linear) + f32(row.bias[at]));
  }
  const float unit = f32((on_score_ ? 1.0 : size * d.scale) * kLog2E * d.exponent);
  const auto exponential = [&](float y) {
    return f32(d.exp2 ? d.exp2(static_cast<double>(y)) : exp2_64(static_cast<double>(y)));
  };
  const auto weight = [&](float v, float m, bool plain) {
    if (plain) return exponential(v * unit);
    return exponential(on_score_
                           ? (v - m) * unit
                           : f32(static_cast<double>(v) * static_cast<double>(unit) - static_cast<double>(m * unit)));
  };
  const std::int64_t last = d.unshifted > 0 ? (p.n - 1) / d.unshifted * d.unshifted : p.n;
  const auto key = [&](std::size_t k) {
    return static_cast<std::int64_t>(row.key[static_cast<std::size_t>(finite[k])]);
  };
  float m = -kInf;
  std::array<float, 4> l{};
  const auto steps = static_cast<std::size_t>(p.step_count());
  RowOutput out{std::vector<double>(static_cast<std::size_t>(p.n), 0.0)};
  out.m.assign(steps, kNone), out.l.assign(steps, kNone);
  const auto sum_of = [&] { return static_cast<double>((l[0] + l[1]) + (l[2] + l[3])); };
  const double natural = on_score_ ? 1.0 : size * d.scale;
  for (std::size_t at = 0; at < x.size();) {
    const std::int64_t first = key(at) / tile_ * tile_;
    std::size_t end = at;
    float tile_max = -kInf;
    for (; end < x.size() && key(end) < first + tile_; ++end) tile_max = std::max(tile_max, x[end]);
    const float next = d.tile_maximum ? tile_max : std::max(m, tile_max);
    const float alpha = m == -kInf ? 0.0F : f32(exp2_64(static_cast<double>((m - next) * unit)));
    for (float& lane : l) lane *= d.l_power == 0 ? 1.0F : alpha;
    m = next;
    for (; at < end; ++at) {
      float& lane = l[quad_ ? static_cast<std::size_t>((key(at) - first) % 8 / 2) : 0];
      lane = stored(d.l_key, lane + weight(x[at], m, key(at) >= last));
    }
    for (float& lane : l) lane = stored(d.l_tile, lane);
    for (auto step = static_cast<std::size_t>(first / tile_); step < steps; ++step)
      out.m[step] = static_cast<double>(m) * natural, out.l[step] = sum_of();
  }
  const double sum = sum_of();
  const double inverse = (d.reciprocal ? d.reciprocal(sum) : 1 / sum) * d.gain;
  for (std::size_t k = 0; k < x.size(); ++k)
    out.o[static_cast<std::size_t>(key(k))] = static_cast<double>(weight(x[k], m, key(k) >= last)) * inverse;
  const double lse = static_cast<double>(m) * natural + (d.log2 ? d.log2(sum) : log64(sum) * kLog2E) * kLn2;
  out.lse = static_cast<double>(stored(d.lse_store, f32(lse * d.lse_factor / (p.lse == LseBase::kTwo ? kLn2 : 1.0))));
  return out;
}

std::optional<RowOutput> SoftmaxReplay::predict(std::size_t index, const SoftmaxDeviation& d,
                                                const Truth& truth) const {
  const SoftmaxRow read = problem_.row(static_cast<std::int64_t>(index));
  const Classified classified = classify(problem_.params(), read);
  if (!classified.has_numbers) return std::nullopt;
  const RowOutput nominal = row(read, classified.finite, {});
  RowOutput out = row(read, classified.finite, d);
  if (out.o == nominal.o && out.lse == nominal.lse && out.l == nominal.l) return std::nullopt;
  for (std::size_t c = 0; c < out.o.size(); ++c)
    out.o[c] += truth.outputs[0].mid[index * out.o.size() + c] - nominal.o[c];
  const std::size_t states = out.m.size(), first = problem_.lse() != nullptr ? 2 : 1;
  if (problem_.lse() != nullptr) out.lse += truth.outputs[1].mid[index] - nominal.lse;
  for (std::size_t step = 0; step < states; ++step) {
    out.m[step] += truth.outputs[first].mid[index * states + step] - nominal.m[step];
    out.l[step] += truth.outputs[first + 1].mid[index * states + step] - nominal.l[step];
  }
  return out;
}

}  // namespace assay
