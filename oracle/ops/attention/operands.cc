// Decodes a head once for all its rows.
#include "oracle/ops/attention/operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "oracle/panel_gemm.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kAbsBits = 12;           // of |v| in fp32
constexpr int kAbsTop = 100;           // exponent of a channel's largest |v| there
constexpr double kAbsLeast = 0x1p-36;  // smaller ones are raised to it

int exponent_of(double x) { return static_cast<int>((std::bit_cast<std::uint64_t>(x) >> 52) & 0x7ff) - 1023; }
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

ASSAY_HOT void add_dim(double q, const float* panels, std::size_t stride, std::size_t count, double* score, double* magnitude) {
  const double q_abs = std::abs(q);
  for (std::size_t p = 0; p < count; ++p) {
    const float* k = panels + p * stride;
    for (std::size_t j = 0; j < kNarrowPanel; ++j) {
      const double x = static_cast<double>(k[j]);
      score[p * kNarrowPanel + j] += q * x;
      magnitude[p * kNarrowPanel + j] += q_abs * std::abs(x);
    }
  }
}

/// keys[8][d], one after the other, into one panel [d][8].
ASSAY_HOT void transpose(const double* keys, std::size_t d, float* panel) {
  for (std::size_t c = 0; c < d; ++c)
    for (std::size_t j = 0; j < kNarrowPanel; ++j) panel[c * kNarrowPanel + j] = static_cast<float>(keys[j * d + c]);
}

ASSAY_HOT void narrow(const double* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i]);
}

/// One panel of `v_abs`: |v| up_scale of 16 channels for `count` keys, `stride` apart, rounded up to `kAbsBits` significant bits.
ASSAY_HOT void raise_magnitudes(const double* v, std::size_t stride, std::size_t count, const double* up_scale, float* out) {
  constexpr std::uint64_t kLow = (std::uint64_t{1} << (53 - kAbsBits)) - 1;
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t c = 0; c < kWidePanel; ++c) {
      const double x = std::abs(v[j * stride + c]) * up_scale[c];
      const double raised = std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) + kLow) & ~kLow);
      const double kept = raised > kAbsLeast ? raised : kAbsLeast;
      out[j * kWidePanel + c] = static_cast<float>(select(x == 0, 0.0, kept));
    }
}

constexpr std::size_t kLanes = 16;

/// Interleaved folds over a vector's finite elements.
struct Lanes {
  double largest[kLanes] = {}, least[kLanes], squares[kLanes] = {};
  double poison[kLanes] = {};  ///< NaN once an element is not finite
  Lanes() { std::fill_n(least, kLanes, kInf); }
};

[[gnu::always_inline]] inline void fold_block(const double* x, Lanes& lanes) {
  ASSAY_VECTORIZE
  for (std::size_t l = 0; l < kLanes; ++l) {
    const double a = std::abs(x[l]), kept = select(a < kInf, a, 0.0), above_zero = select(kept > 0, kept, kInf);
    lanes.poison[l] += a * 0;
    lanes.largest[l] = kept > lanes.largest[l] ? kept : lanes.largest[l];
    lanes.least[l] = above_zero < lanes.least[l] ? above_zero : lanes.least[l];
    lanes.squares[l] += kept * kept;
  }
}

ASSAY_HOT void fold(const double* x, std::size_t n, Lanes& lanes) {
  std::size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) fold_block(x + c, lanes);
  if (c == n) return;
  double rest[kLanes] = {};
  std::copy(x + c, x + n, rest);
  fold_block(rest, lanes);
}

/// Folds one value vector into the facts of its tile. Elements that are not finite, or all if the factor is not, become 0; true if
/// there are any.
ASSAY_HOT bool note_values(double factor, double* v, std::size_t n, double* raw_max, double* raw_least, double* max,
                           double* sum) {
  constexpr std::uint64_t kExponent = std::uint64_t{0x7ff} << 52;
  const bool finite_factor = (std::bit_cast<std::uint64_t>(factor) & kExponent) != kExponent;
  const double f = finite_factor ? std::abs(factor) : 0.0;
  std::uint64_t special = finite_factor ? 0 : 1;
  ASSAY_VECTORIZE
  for (std::size_t c = 0; c < n; ++c) {
    const bool finite = (std::bit_cast<std::uint64_t>(v[c]) & kExponent) != kExponent;
    special |= finite ? 0U : 1U;
    const double kept = select(finite && finite_factor, v[c], 0.0);
    const double magnitude = std::abs(kept), scaled = magnitude * f;
    v[c] = kept;
    raw_max[c] = magnitude > raw_max[c] ? magnitude : raw_max[c];
    const double above_zero = select(magnitude > 0, magnitude, kInf);
    raw_least[c] = above_zero < raw_least[c] ? above_zero : raw_least[c];
    max[c] = scaled > max[c] ? scaled : max[c];
    sum[c] += scaled;
  }
  return special != 0;
}

}  // namespace

VectorFacts vector_facts(Format format, std::span<const double> x) {
  Lanes lanes;
  fold(x.data(), x.size(), lanes);
  VectorFacts facts;
  double least = kInf, squares = 0;
  for (std::size_t l = 0; l < kLanes; ++l) {
    facts.max = std::max(facts.max, lanes.largest[l]);
    least = std::min(least, lanes.least[l]);
    squares += lanes.squares[l];
    facts.finite = facts.finite && lanes.poison[l] == 0;
  }
  if (facts.max == 0) return facts;
  facts.norm = std::sqrt(squares) * (1 + (static_cast<double>(x.size()) + 4) * kU);
  const FormatInfo& f = info(format);
  facts.spread = exponent_of(facts.max) - std::max(exponent_of(least) - f.fraction_bits, exponent_of(f.min_subnormal));
  return facts;
}

ScoreRounding::ScoreRounding(std::int64_t dim) {
  const int log2_dim = dim > 1 ? exponent_of(static_cast<double>(dim - 1)) + 1 : 0;
  const double d = static_cast<double>(dim);
  unit = d * kU / (1 - d * kU);
  exact_up_to = 53 - 2 - log2_dim;
}

HeadLoader::HeadLoader(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head)
    : problem_(problem), head_(head) {
  const AttentionParams& p = problem.params();
  any_row_ = {batch, kv_head * (p.heads_q / p.heads_kv), 0};
  head = HeadOperands{};
  head.batch = batch;
  head.kv_head = kv_head;
  head.keys = problem.kv_len(batch);
  head.dim_qk = p.dim_qk;
  head.dim_v = p.dim_v;
  const auto n = static_cast<std::size_t>(head.keys), d = static_cast<std::size_t>(p.dim_qk), dv = static_cast<std::size_t>(p.dim_v);
  head.k_panels.resize((n + kNarrowPanel - 1) / kNarrowPanel * kNarrowPanel * d);
  head.v.resize(n * dv);
  head.v_panels.resize(n * head.value_panels() * kWidePanel);
  head.v_abs_unit.assign(head.value_panels() * kWidePanel, 1.0);
  head.k_norm.resize(head.tiles() * kKeyTile);
  head.k_spread.resize(head.tiles() * kKeyTile);
  head.v_max.resize(dv);
  head.v_abs_sum.resize(dv);
  head.value_factor.assign(p.descale == Descale::kBlock ? n : 1, 1.0);
  tile_facts_.resize(head.tiles());
  for (TileFacts& facts : tile_facts_) {
    facts.raw_max.resize(dv);
    facts.raw_least.assign(dv, kInf);
    facts.max.resize(dv);
    facts.sum.resize(dv);
  }
  raw_max_.resize(dv);
}

void HeadLoader::decode_tile(std::size_t tile) {
  HeadOperands& h = head_;
  TileFacts& facts = tile_facts_[tile];
  const auto d = static_cast<std::size_t>(h.dim_qk), dv = static_cast<std::size_t>(h.dim_v);
  const std::size_t first = tile * kKeyTile, count = h.tile_keys(tile);
  const Format format = problem_.params().input;
  std::vector<double> k(kNarrowPanel * d);
  for (std::size_t at = 0; at < count; at += kNarrowPanel) {
    std::fill(k.begin(), k.end(), 0.0);
    for (std::size_t j = 0; j < std::min(kNarrowPanel, count - at); ++j) {
      const std::size_t key = first + at + j;
      const std::span<double> vector(k.data() + j * d, d);
      problem_.load_k(h.batch, h.kv_head, static_cast<std::int64_t>(key), vector);
      const VectorFacts of_key = vector_facts(format, vector);
      h.k_norm[key] = of_key.norm;
      h.k_spread[key] = of_key.spread;
      facts.k_max = std::max(facts.k_max, of_key.max);
    }
    transpose(k.data(), d, h.k_panels.data() + (first + at) * d);
  }
  float* panels = h.v_panels.data() + first * h.value_panels() * kWidePanel;
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t key = first + j;
    const std::span<double> v(h.v.data() + key * dv, dv);
    problem_.load_v(h.batch, h.kv_head, static_cast<std::int64_t>(key), v);
    const double factor = problem_.has_value_factor() ? problem_.value_factor(any_row_, static_cast<std::int64_t>(key)) : 1.0;
    if (h.value_factor.size() > 1 || key == 0)
      h.value_factor[h.value_factor.size() > 1 ? key : 0] = std::isfinite(factor) ? factor : 0.0;
    const bool special = note_values(factor, v.data(), dv, facts.raw_max.data(), facts.raw_least.data(), facts.max.data(), facts.sum.data());
    for (std::size_t c = 0; c < dv; c += kWidePanel) {
      float* to = panels + c * count + j * kWidePanel;
      if (dv - c < kWidePanel) std::fill_n(to, kWidePanel, 0.0F);
      narrow(v.data() + c, std::min(kWidePanel, dv - c), to);
    }
    if (special) facts.special.push_back(static_cast<std::int32_t>(key));
  }
}

void HeadLoader::join_tiles() {
  HeadOperands& h = head_;
  double largest = 0, least = kInf;
  for (const TileFacts& facts : tile_facts_) {
    for (std::size_t c = 0; c < raw_max_.size(); ++c) {
      raw_max_[c] = std::max(raw_max_[c], facts.raw_max[c]);
      largest = std::max(largest, facts.raw_max[c]);
      least = std::min(least, facts.raw_least[c]);
      h.v_max[c] = std::max(h.v_max[c], facts.max[c]);
      h.v_abs_sum[c] += facts.sum[c];
    }
    h.k_max = std::max(h.k_max, facts.k_max);
    h.special_v.insert(h.special_v.end(), facts.special.begin(), facts.special.end());
  }
  for (double& sum : h.v_abs_sum) sum *= 1 + (static_cast<double>(h.keys) + 4) * kU;
  for (double norm : h.k_norm) h.k_norm_max = std::max(h.k_norm_max, norm);
  for (double spread : h.k_spread) h.k_spread_max = std::max(h.k_spread_max, spread);
  double factor = 0;
  for (double f : h.value_factor) factor = std::max(factor, std::abs(f));
  if (factor > 0) h.value_factor_unit = power_of_two(exponent_of(factor));
  separate_magnitudes_ = info(problem_.params().input).fraction_bits >= kAbsBits || least < kAbsLeast || largest >= power_of_two(kAbsTop + 1);
  if (!separate_magnitudes_) return;
  h.v_abs.resize(h.v_panels.size());
  for (std::size_t c = 0; c < raw_max_.size(); ++c)
    if (raw_max_[c] > 0) h.v_abs_unit[c] = power_of_two(exponent_of(raw_max_[c]) - kAbsTop);
}

void HeadLoader::bound_values(std::size_t tile) {
  HeadOperands& h = head_;
  if (!separate_magnitudes_) return;
  const auto dv = static_cast<std::size_t>(h.dim_v);
  const std::size_t first = tile * kKeyTile, count = h.tile_keys(tile);
  float* panels = h.v_abs.data() + first * h.value_panels() * kWidePanel;
  std::vector<double> up_scale(h.v_abs_unit.size());
  for (std::size_t c = 0; c < up_scale.size(); ++c) up_scale[c] = 1 / h.v_abs_unit[c];
  std::vector<double> rest(dv % kWidePanel != 0 ? count * kWidePanel : 0);  // the last panel, with channels of zeros
  for (std::size_t c = 0; c < dv; c += kWidePanel) {
    const double* from = h.v.data() + first * dv + c;
    std::size_t stride = dv;
    if (dv - c < kWidePanel) {
      for (std::size_t j = 0; j < count; ++j) std::copy_n(from + j * dv, dv - c, rest.data() + j * kWidePanel);
      from = rest.data();
      stride = kWidePanel;
    }
    raise_magnitudes(from, stride, count, up_scale.data() + c, panels + c * count);
  }
}

void load_head(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head) {
  if (head.batch == batch && head.kv_head == kv_head) return;
  HeadLoader loader(problem, batch, kv_head, head);
  for (std::size_t tile = 0; tile < head.tiles(); ++tile) loader.decode_tile(tile);
  loader.join_tiles();
  for (std::size_t tile = 0; tile < head.tiles(); ++tile) loader.bound_values(tile);
}

void head_scores(const HeadOperands& head, std::span<const double> q, std::vector<double>& score,
                 std::vector<double>& magnitude) {
  const std::size_t panels = (static_cast<std::size_t>(head.keys) + kNarrowPanel - 1) / kNarrowPanel;
  score.assign(panels * kNarrowPanel, 0.0);
  magnitude.assign(panels * kNarrowPanel, 0.0);
  for (std::size_t c = 0; c < q.size(); ++c)
    add_dim(q[c], head.k_panels.data() + c * kNarrowPanel, q.size() * kNarrowPanel, panels, score.data(), magnitude.data());
  score.resize(static_cast<std::size_t>(head.keys));
  magnitude.resize(static_cast<std::size_t>(head.keys));
}

}  // namespace assay
