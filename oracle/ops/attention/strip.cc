// Strips of rows: which keys they look at, their scores, weights and outputs.
//
// Scores and weights lie by tiles of kKeyTile keys, row after row, each row of a tile a little longer than the tile so that rows do
// not compete for the same lines of a cache. Weights of keys that a row does not have are 0: adding them changes no bit of a sum, so a
// row's results do not depend on the rows beside it. All sums run over absolute key positions: 16 lanes for the row sum, tiles
// from zero for the outputs.
#include "oracle/ops/attention/strip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/ops/attention/row_classes.h"
#include "oracle/ops/attention/strip_loops.h"
#include "oracle/panel_gemm.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr std::size_t kSkew = 4;  // elements between rows

std::size_t down_to(std::size_t x, std::size_t step) { return x / step * step; }
std::size_t up_to(std::size_t x, std::size_t step) { return (x + step - 1) / step * step; }

/// Keys alike: one finite factor, and nothing else between score and logit.
bool keys_alike(const AttentionProblem& problem) {
  return !problem.has_bias() && problem.params().softcap == 0 && problem.same_factor_for_all_keys();
}

/// In the declared base.
double lse_radius(const AttentionParams& params, const RowAnalysis& a) {
  if (params.lse != LseBase::kTwo) return a.lse_radius;
  return a.lse_radius / kLn2 * (1 + 8 * kU) + 4 * kU * std::abs(a.lse / kLn2);
}

}  // namespace

void take_radius(const AttentionParams& params, const RowAnalysis& a, RowTruth& truth) {
  for (std::size_t c = 0; c < truth.o_radius.size(); ++c)
    if ((truth.o_classes[c] & kNumber) != 0) truth.o_radius[c] = a.o_radius[c];
  if ((truth.lse_classes & kNumber) != 0 && !a.uniform) truth.lse_radius = lse_radius(params, a);
}

struct Strip::Line {
  AttentionRow row;
  std::size_t first = 0, end = 0;        ///< keys looked at
  bool alike = false;                    ///< all of them are keys of the row, and alike
  std::vector<std::int32_t> admissible;  ///< unless alike
  VectorFacts q;
  bool exact_magnitudes = false;         ///< `magnitudes` holds sum |q_c k_jc|
  LogitFacts logits;
  std::size_t keys = 0;                  ///< admissible ones
  bool numbers = false;                  ///< some logit is finite, none NaN or +inf
  RowAnalysis gathered;                  ///< unless alike
  Extremes extremes;                     ///< of the scores, if alike
  double factor = 0, reference = 0;      ///< alike: t_j = factor (s_j - reference)
  double farthest = 0;                   ///< alike: the score of the least logit
  double max_logit = 0, min_logit = 0;
  double sum = 0, squares = 0;
  KeySums sums;                          ///< if alike, over weights that are not normalised; |k_j| in place of |q| |k_j|
  double norm = 0;                       ///< largest |k| of the keys looked at
  WeightErrors errors;
};

Strip::~Strip() = default;

Strip::Strip(const AttentionProblem& problem) : problem_(problem), bits_(weight_bits(problem.params().input)), rounding_(problem.params().input, bits_) {}

std::size_t Strip::rows_at_once(std::int64_t keys) {
  constexpr std::int64_t kMost = 48, kLeast = 12, kScores = std::int64_t{1} << 21;
  return static_cast<std::size_t>(std::clamp(kScores / std::max<std::int64_t>(keys, 1) / 6 * 6, kLeast, kMost));
}

void Strip::begin(Line& line, const AttentionRow& row) {
  line.row = row;
  line.logits = {};
  line.extremes = {};
  line.numbers = false;
  line.admissible.clear();
  std::pair<std::int64_t, std::int64_t> span = problem_.key_span(row);
  if (uniform_) span = {0, head_->keys};
  line.alike = uniform_ || (keys_alike(problem_) && !problem_.masks_inside());
  line.keys = static_cast<std::size_t>(span.second - span.first);
  if (!line.alike) {
    problem_.admissible_keys(row, line.admissible);
    line.keys = line.admissible.size();
    span = {0, 0};
    if (line.keys > 0) span = {line.admissible.front(), line.admissible.back() + 1};
  }
  line.first = static_cast<std::size_t>(span.first);
  line.end = static_cast<std::size_t>(span.second);
}

void Strip::evaluate(const HeadOperands& head, std::span<const AttentionRow> rows, const Visit& visit) {
  head_ = &head;
  rows_ = rows.size();
  if (lines_.size() < rows_) lines_.resize(rows_);
  first_ = static_cast<std::size_t>(head.keys);
  end_ = 0;
  for (std::size_t r = 0; r < rows_; ++r) {
    begin(lines_[r], rows[r]);
    if (lines_[r].first == lines_[r].end) continue;
    first_ = std::min(first_, lines_[r].first);
    end_ = std::max(end_, lines_[r].end);
  }
  if (end_ > 0) {
    first_tile_ = first_ / kKeyTile;
    end_tile_ = (end_ + kKeyTile - 1) / kKeyTile;
    const std::size_t width = end_tile_ - first_tile_ > 1 ? kKeyTile : up_to(end_ - first_tile_ * kKeyTile, 16);
    stride_ = width + kSkew;
    score_rows();
    for (std::size_t r = 0; r < rows_; ++r) {
      weigh(r);
      if (lines_[r].numbers && !problem_.same_factor_for_all_keys()) scale_by_block(r);
    }
    multiply_values();
  }
  for (std::size_t r = 0; r < rows_; ++r) finish(r, visit);
}

void Strip::score_rows() {
  const auto d = static_cast<std::size_t>(head_->dim_qk);
  const std::size_t size = (end_tile_ - first_tile_) * rows_ * stride_;
  make_room(scores_, size);
  make_room(weights_, size);
  q_stride_ = d + kSkew;
  q_.resize(rows_ * q_stride_);
  a_.resize(rows_);
  c_.resize(rows_);
  for (std::size_t r = 0; r < rows_; ++r) {
    const std::span<double> q(q_.data() + r * q_stride_, d);
    problem_.load_q(lines_[r].row, q);
    lines_[r].q = vector_facts(problem_.params().input, q);
    lines_[r].exact_magnitudes = false;
    a_[r] = q.data();
  }
  if (uniform_) return;
  const PanelGemm& gemm = panel_gemm();
  for (std::size_t tile = first_tile_; tile < end_tile_; ++tile) {
    const std::size_t start = tile * kKeyTile, from = std::max(first_, start), to = std::min(end_, start + kKeyTile);
    for (std::size_t panel = from / kNarrowPanel; panel * kNarrowPanel < to; ++panel) {
      for (std::size_t r = 0; r < rows_; ++r) c_[r] = scores(tile, r) + (panel * kNarrowPanel - start);
      gemm.store_exact(a_.data(), rows_, head_->k_panel(panel), d, c_.data());
    }
    for (std::size_t r = 0; r < rows_; ++r) {
      Line& line = lines_[r];
      const std::size_t own = std::max(line.first, start), own_end = std::min(line.end, start + kKeyTile);
      if (line.alike && own < own_end) find_extremes(scores(tile, r) + (own - start), own_end - own, line.extremes);
    }
  }
  score_magnitudes();
}

/// sum |q_c k_jc| of the rows where it matters.
void Strip::score_magnitudes() {
  const auto d = static_cast<std::size_t>(head_->dim_qk);
  std::vector<std::size_t> rows;
  for (std::size_t r = 0; r < rows_; ++r) {
    Line& line = lines_[r];
    if (line.first == line.end) continue;
    const double norm = largest_of(head_->k_norm.data() + line.first, line.end - line.first);
    const double factor = problem_.score_factor(line.row, static_cast<std::int64_t>(line.first));
    line.exact_magnitudes =
        !problem_.same_factor_for_all_keys() || magnitudes_matter(problem_.params(), factor, line.q.norm * norm);
    line.norm = norm;
    if (line.exact_magnitudes) rows.push_back(r);
  }
  if (rows.empty()) return;
  make_room(magnitudes_, scores_.size());
  q_magnitudes_.resize(rows.size() * q_stride_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double* q = q_magnitudes_.data() + i * q_stride_;
    for (std::size_t c = 0; c < d; ++c) q[c] = std::abs(q_[rows[i] * q_stride_ + c]);
    a_[i] = q;
  }
  for (std::size_t panel = first_ / kNarrowPanel; panel * kNarrowPanel < end_; ++panel) {
    const std::size_t tile = panel * kNarrowPanel / kKeyTile, column = panel * kNarrowPanel % kKeyTile;
    for (std::size_t i = 0; i < rows.size(); ++i) c_[i] = magnitudes_.data() + chunk(tile, rows[i]) + column;
    panel_gemm().store_exact_magnitudes(a_.data(), rows.size(), head_->k_panel(panel), d, c_.data());
  }
}

/// What magnitudes_ lacks to be an upper bound.
double Strip::magnitude_rounding() const { return 1 + (static_cast<double>(head_->dim_qk) + 4) * kU; }

/// Weights of one row, tile by tile: `fill(tile, from, to, t)` writes log-weights of columns [from, to), -inf where there is no key.
template <class Fill>
void Strip::weigh_tiles(std::size_t r, const Fill& fill) {
  Line& line = lines_[r];
  WeightSums sums;
  MomentSums moments;
  line.sums.shallowest.clear();
  for (std::size_t tile = first_tile_; tile < end_tile_; ++tile) {
    const std::size_t start = tile * kKeyTile;
    const auto column = [&](std::size_t key) { return key < start ? 0 : std::min(key - start, kKeyTile); };
    const std::size_t low = down_to(column(first_), 16), high = up_to(column(end_), 16);
    const std::size_t from = std::min(std::max(low, down_to(column(line.first), 16)), high);
    const std::size_t to = std::max(from, std::min(high, up_to(column(line.end), 16)));
    double* w = weights(tile, r);
    std::fill(w + low, w + from, 0.0);
    std::fill(w + to, w + high, 0.0);
    if (from == to) continue;
    double t[kKeyTile];
    fill(tile, from, to, t);
    exp_weights(rounding_, t + from, to - from, w + from, sums);
    if (!line.alike || uniform_) continue;
    const double* magnitude = line.exact_magnitudes ? magnitudes_.data() + chunk(tile, r) : head_->k_norm.data() + start;
    add_moments(w + from, t + from, magnitude + from, to - from, moments);
    const std::size_t own = std::max(column(line.first), from), own_end = std::min(column(line.end), to);
    double runs[kKeyTile / KeySums::kBlock];
    find_shallowest(t, own, own_end, runs);
    for (std::size_t run = own / KeySums::kBlock; run * KeySums::kBlock < own_end; ++run) line.sums.shallowest.push_back(runs[run]);
  }
  line.sums.depth = WeightSums::total(moments.depth);
  line.sums.magnitude = WeightSums::total(moments.x);
  line.sum = WeightSums::total(sums.weights);
  line.squares = WeightSums::total(sums.squares);
}

void Strip::weigh(std::size_t r) {
  Line& line = lines_[r];
  if (uniform_) {
    weigh_tiles(r, [&](std::size_t tile, std::size_t from, std::size_t to, double* t) {
      for (std::size_t c = from; c < to; ++c) t[c] = tile * kKeyTile + c < line.end ? 0 : -kInf;
    });
    line.numbers = true;
    line.max_logit = line.min_logit = line.factor = line.reference = line.farthest = 0;
    line.errors = alike_weight_errors(static_cast<double>(line.keys), 0, 0, 0, bits_);
    return;
  }
  if (line.keys == 0) return clear_weights(r);
  if (line.alike && weigh_alike(r)) return;
  if (line.alike) {
    line.alike = false;
    line.admissible.resize(line.keys);
    std::iota(line.admissible.begin(), line.admissible.end(), static_cast<std::int32_t>(line.first));
  }
  weigh_gathered(r);
}

void Strip::clear_weights(std::size_t r) {
  for (std::size_t tile = first_tile_; tile < end_tile_; ++tile) std::fill_n(weights(tile, r), stride_, 0.0);
}

bool Strip::weigh_alike(std::size_t r) {
  Line& line = lines_[r];
  line.factor = problem_.score_factor(line.row, static_cast<std::int64_t>(line.first));
  if (!line.extremes.finite() || !std::isfinite(line.factor)) return false;
  // + 0.0: which of +0 and -0 is found depends on the order of comparisons.
  const double low = line.extremes.least() + 0.0, high = line.extremes.largest() + 0.0;
  line.reference = line.factor >= 0 ? high : low;
  line.farthest = line.factor >= 0 ? low : high;
  line.max_logit = line.factor * line.reference;
  line.min_logit = line.factor * line.farthest;
  weigh_tiles(r, [&](std::size_t tile, std::size_t from, std::size_t to, double* t) {
    const std::size_t start = tile * kKeyTile;
    shift_scores(line.factor, line.reference, scores(tile, r) + from, to - from, t + from);
    for (std::size_t c = from; start + c < line.first; ++c) t[c] = -kInf;
    for (std::size_t c = to; start + c > line.end; --c) t[c - 1] = -kInf;
  });
  line.numbers = true;
  const ScoreRounding rounding(head_->dim_qk);
  double norm = 0;
  if (rounding.error(line.q.spread, head_->k_spread_max) > 0)
    norm = largest_beyond(rounding.exact_up_to - line.q.spread, head_->k_spread.data() + line.first,
                          head_->k_norm.data() + line.first, line.keys);
  const double score_error = std::abs(line.factor) * rounding.unit * line.q.norm * norm * (1 + 4 * kU);
  const double top = score_error + 2.02 * kU * std::abs(line.max_logit);
  line.errors = alike_weight_errors(static_cast<double>(line.keys), score_error, top, std::abs(line.factor * (line.reference - line.farthest)), bits_);
  return true;
}

void Strip::weigh_gathered(std::size_t r) {
  Line& line = lines_[r];
  RowAnalysis& a = line.gathered;
  a.row = line.row;
  a.operands = head_;
  row_scores_.resize(line.keys);
  for (std::size_t i = 0; i < line.keys; ++i) {
    const auto key = static_cast<std::size_t>(line.admissible[i]);
    row_scores_[i] = scores(key / kKeyTile, r)[key % kKeyTile];
  }
  line.logits = gather_logits(problem_, *head_, line.admissible, row_scores_, line.q.norm * (1 + 2 * kU), a, logits_);
  line.numbers = !line.logits.nan && !line.logits.plus_inf && !a.keys.empty();
  if (!line.numbers) {
    line.min_logit = logits_.empty() ? -kInf : *std::min_element(logits_.begin(), logits_.end());
    return clear_weights(r);
  }
  gather_depths(problem_.params(), a, logits_, depths_);
  const std::size_t n = a.keys.size();
  if (line.exact_magnitudes)
    for (std::size_t j = 0; j < n; ++j)
      if (a.magnitude[j] > 0) a.magnitude[j] = magnitude_of(r, a.keys[j]);
  line.max_logit = a.max_logit = logits_[a.top] + 0.0;
  line.min_logit = *std::min_element(logits_.begin(), logits_.end());
  std::size_t next = 0;
  weigh_tiles(r, [&](std::size_t tile, std::size_t from, std::size_t to, double* t) {
    std::fill(t + from, t + to, -kInf);
    for (; next < n && static_cast<std::size_t>(a.keys[next]) < (tile + 1) * kKeyTile; ++next)
      t[static_cast<std::size_t>(a.keys[next]) % kKeyTile] = depths_[next];
  });
  a.p.resize(n);
  a.depth.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    const auto key = static_cast<std::size_t>(a.keys[j]);
    a.depth[j] = std::max(0.0, -depths_[j]);
    a.p[j] = weights(key / kKeyTile, r)[key % kKeyTile];
  }
  a.sum = line.sum;
  if (keys_alike(problem_)) {
    const double score_error = std::abs(a.factor[0]) * largest_of(a.magnitude.data(), n) *
                               ScoreRounding(head_->dim_qk).error(line.q.spread, head_->k_spread_max);
    line.errors = alike_weight_errors(static_cast<double>(n), score_error, score_error + 2.02 * kU * std::abs(line.max_logit),
                                      largest_of(a.depth.data(), n), bits_);
  } else {
    double top = 0;
    log_weight_errors(problem_.params(), a, line.q.spread, eta_, top);
    line.errors = weight_errors(a, eta_, top, 1 / a.sum, bits_);
  }
}

/// Factors by block join the weights that multiply values; p and the row sum stay without them.
void Strip::scale_by_block(std::size_t r) {
  for (std::size_t tile = first_tile_; tile < end_tile_; ++tile) {
    const std::size_t count = std::min(stride_ - kSkew, head_->tile_keys(tile));
    scale_weights(rounding_, head_->value_factor.data() + tile * kKeyTile, count, weights(tile, r));
  }
}

void Strip::multiply_values() {
  const PanelGemm& gemm = panel_gemm();
  const auto add = bits_ < 53 ? gemm.add_exact : gemm.add;
  o_stride_ = head_->value_panels() * kWidePanel + kSkew;
  o_.assign(rows_ * o_stride_, 0.0);
  abs_.assign(rows_ * o_stride_, 0.0F);
  a32_.resize(rows_);
  c32_.resize(rows_);
  weights32_.resize(rows_ * stride_);
  const double unit32 = problem_.same_factor_for_all_keys() ? 1.0 : head_->value_factor_unit;
  for (std::size_t tile = first_tile_; tile < end_tile_; ++tile) {
    const std::size_t start = tile * kKeyTile;
    const std::size_t from = first_ > start ? down_to(first_ - start, 16) : 0;
    const std::size_t depth = std::min(end_ - start, head_->tile_keys(tile)) - from;
    for (std::size_t r = 0; r < rows_; ++r) {
      float* w32 = weights32_.data() + r * stride_;
      raise_weights(rounding_, unit32, weights(tile, r) + from, depth, w32);
      a_[r] = weights(tile, r) + from;
      a32_[r] = w32;
    }
    for (std::size_t panel = 0; panel < head_->value_panels(); ++panel) {
      const float* v = head_->v_panels.data() + head_->v_panel(tile, panel) + from * kWidePanel;
      for (std::size_t r = 0; r < rows_; ++r) c_[r] = o_.data() + r * o_stride_ + panel * kWidePanel;
      add(a_.data(), rows_, v, depth, c_.data());
    }
    const AlignedVector<float>& magnitudes = head_->v_abs.empty() ? head_->v_panels : head_->v_abs;
    for (std::size_t panel = 0; panel < head_->value_panels(); ++panel) {
      const float* v = magnitudes.data() + head_->v_panel(tile, panel) + from * kWidePanel;
      for (std::size_t r = 0; r < rows_; ++r) c32_[r] = abs_.data() + r * o_stride_ + panel * kWidePanel;
      gemm.add_exact_magnitudes(a32_.data(), rows_, v, depth, c32_.data());
    }
  }
}

/// An infinite f_j asks for the sign of s_j, and whether it is 0, which may be more than fp64 knows: the reference decides. Where
/// fp64 found no numbers among the logits, what follows from those it finds stays unknown.
void Strip::finish_exactly(std::size_t r, const Visit& visit) {
  constexpr int kBits = 128;
  Line& line = lines_[r];
  RowTruth truth = reference_row(problem_, line.row, kBits);
  truth.facts.escalated = true;
  if (line.numbers) return visit(r, truth, &analyse(r));
  if (truth.facts.max_logit == -kInf) return visit(r, truth, nullptr);  // none: a sink's or a declared answer, as without factors
  for (std::size_t c = 0; c < truth.o_radius.size(); ++c)
    if ((truth.o_classes[c] & kNumber) != 0) truth.o_radius[c] = kInf;
  if ((truth.lse_classes & kNumber) != 0) truth.lse_radius = kInf;
  visit(r, truth, nullptr);
}

void Strip::finish(std::size_t r, const Visit& visit) {
  Line& line = lines_[r];
  if (line.logits.infinite_factor && !uniform_) return finish_exactly(r, visit);
  RowTruth truth;
  truth.facts.batch = static_cast<std::int32_t>(line.row.batch);
  truth.facts.head = static_cast<std::int32_t>(line.row.head);
  truth.facts.query = static_cast<std::int32_t>(line.row.query);
  truth.facts.keys = static_cast<std::int32_t>(line.keys);
  if (line.keys > 0) {
    truth.facts.first_key = static_cast<std::int32_t>(line.first);
    truth.facts.last_key = static_cast<std::int32_t>(line.end) - 1;
  }
  if (!line.numbers) {
    const bool mean = classify_without_softmax(problem_, *head_, line.row, line.logits, line.keys > 0, truth);
    if (line.logits.nan || line.logits.plus_inf) truth.facts.min_logit = line.min_logit;
    if (mean) take_mean(r, truth, visit);
    else visit(r, truth, nullptr);
    return;
  }
  RowAnalysis& a = analyse(r);
  truth.o_mid = a.o;
  truth.o_radius = a.o_radius;
  truth.lse_mid = problem_.params().lse == LseBase::kTwo ? a.lse / kLn2 : a.lse;
  truth.lse_radius = lse_radius(problem_.params(), a);
  if (uniform_) {
    classify_values(problem_, a, {}, nonzero_channels(r, a), truth);
    visit(r, truth, &a);
    return;
  }
  truth.facts.max_logit = a.max_logit;
  truth.facts.min_logit = a.min_logit;
  truth.facts.lse = a.lse;
  truth.facts.effective_keys = a.effective_keys;
  classify_softmax(problem_, a, line.logits, nonzero_channels(r, a), truth);
  visit(r, truth, &a);
}

RowAnalysis& Strip::analyse(std::size_t r) {
  const Line& line = lines_[r];
  RowAnalysis& a = line.alike ? alike_ : lines_[r].gathered;
  const double q_norm = line.q.norm * (1 + 2 * kU);
  a.row = line.row;
  a.operands = head_;
  a.uniform = uniform_;
  a.magnitude_exact = line.exact_magnitudes;
  sums(r, a);
  current_ = r;
  if (line.alike) {
    name_keys(line, a);
    for (std::vector<double>* array : {&a.score, &a.linear, &a.depth, &a.magnitude, &a.p}) array->clear();
    a.described = false;
    a.sums.known = !uniform_;
    a.sums.depth = std::max(0.0, line.sums.depth) / a.denominator;
    a.sums.magnitude = line.sums.magnitude * (line.exact_magnitudes ? magnitude_rounding() : q_norm) / a.denominator;
    a.sums.deepest = std::abs(line.factor * (line.reference - line.farthest));
    a.sums.shallowest = line.sums.shallowest;
    a.score_hull = line.exact_magnitudes ? largest_magnitude(r) : line.norm * q_norm;
  } else {
    multiply(1 / a.denominator, a.p.data(), a.p.size(), a.p.data());
    a.score_hull = largest_of(a.magnitude.data(), a.magnitude.size());
  }
  outputs(r, a);
  if (uniform_) describe(a);
  return a;
}

double Strip::magnitude_of(std::size_t r, std::int32_t key) const {
  const auto j = static_cast<std::size_t>(key);
  return magnitudes_[chunk(j / kKeyTile, r) + j % kKeyTile] * magnitude_rounding();
}

double Strip::largest_magnitude(std::size_t r) const {
  const Line& line = lines_[r];
  double largest = 0;
  for (std::size_t tile = line.first / kKeyTile; tile * kKeyTile < line.end; ++tile) {
    const std::size_t start = tile * kKeyTile, from = std::max(line.first, start), to = std::min(line.end, start + kKeyTile);
    largest = std::max(largest, largest_of(magnitudes_.data() + chunk(tile, r) + (from - start), to - from));
  }
  return largest * magnitude_rounding();
}

/// The factor and the keys of a row whose keys are alike.
void Strip::name_keys(const Line& line, RowAnalysis& a) {
  a.factor.assign(1, line.factor);
  a.bias.clear();
  if (a.keys.empty() || line.keys == 0 || a.keys.front() != static_cast<std::int32_t>(line.first)) a.keys.clear();
  const std::size_t known = std::min(a.keys.size(), line.keys);
  a.keys.resize(line.keys);
  std::iota(a.keys.begin() + static_cast<std::ptrdiff_t>(known), a.keys.end(), static_cast<std::int32_t>(line.first + known));
}

/// Row sum, denominator and LSE.
void Strip::sums(std::size_t r, RowAnalysis& a) {
  const Line& line = lines_[r];
  const Sink kind = problem_.params().sink;
  a.max_logit = line.max_logit;
  a.min_logit = line.min_logit;
  a.sum = line.sum;
  a.effective_keys = line.sum * line.sum / line.squares;
  const double sink = uniform_ ? -kInf : problem_.sink(a.row);
  a.sink = std::isfinite(sink) ? sink : -kInf;
  const bool far_above = a.sink - a.max_logit > kSinkAbove;
  const double sink_weight = exp64(std::min(a.sink - a.max_logit, kSinkAbove));
  a.denominator = line.sum + sink_weight;
  a.sink_p = sink_weight / a.denominator;
  const double in_lse = kind == Sink::kInLse ? a.denominator : line.sum;
  a.lse = far_above && kind == Sink::kInLse ? a.sink : a.max_logit + log64(in_lse);
}

void Strip::describe(RowAnalysis& a) {
  if (a.described) return;
  const std::size_t r = current_;
  const Line& line = lines_[r];
  const std::size_t n = line.keys;
  for (std::vector<double>* array : {&a.score, &a.linear, &a.depth, &a.magnitude, &a.p}) array->resize(n);
  for (std::size_t tile = line.first / kKeyTile; tile * kKeyTile < line.end; ++tile) {
    const std::size_t start = tile * kKeyTile, from = std::max(line.first, start),
                      count = std::min(line.end, start + kKeyTile) - from;
    const std::size_t at = from - line.first;
    if (uniform_) {
      for (std::vector<double>* array : {&a.score, &a.linear, &a.depth, &a.magnitude})
        std::fill_n(array->data() + at, count, 0.0);
      std::fill_n(a.p.data() + at, count, 1 / a.denominator);
      continue;
    }
    multiply(1 / a.denominator, weights(tile, r) + (from - start), count, a.p.data() + at);
    const double* s = scores(tile, r) + (from - start);
    std::copy_n(s, count, a.score.data() + at);
    describe_keys(line.factor, line.reference, line.q.norm * (1 + 2 * kU), s, head_->k_norm.data() + from, count,
                  {a.linear.data() + at, a.depth.data() + at, a.magnitude.data() + at});
    if (line.exact_magnitudes)
      multiply(magnitude_rounding(), magnitudes_.data() + chunk(tile, r) + (from - start), count, a.magnitude.data() + at);
  }
  a.top = static_cast<std::size_t>(std::find(a.depth.begin(), a.depth.end(), 0.0) - a.depth.begin());
  a.described = true;
}

/// What else a bound asks for, o and abs_p from the products, and the radius.
void Strip::outputs(std::size_t r, RowAnalysis& a) {
  const Line& line = lines_[r];
  const AttentionParams& p = problem_.params();
  a.slope = p.alibi == Alibi::kNone ? 0 : std::abs(problem_.alibi(a.row, 1) - problem_.alibi(a.row, 0));
  a.operand_max = line.q.max + head_->k_max;
  hulls_without_weight(
      problem_, line.logits.no_weight,
      [&](std::int32_t key) {
        const auto at = static_cast<std::size_t>(key);
        if (!std::isfinite(scores(at / kKeyTile, r)[at % kKeyTile])) return kInf;
        return line.exact_magnitudes ? magnitude_of(r, key) : line.q.norm * (1 + 2 * kU) * head_->k_norm[at];
      },
      a);
  a.score_hull = uniform_ ? 0 : std::max(a.hull_without_weight, a.score_hull);
  a.value_factor.clear();
  double factor = 1;
  if (problem_.has_value_factor()) {
    if (problem_.same_factor_for_all_keys()) {
      a.value_factor.assign(1, head_->value_factor[0]);
      factor = head_->value_factor[0];
    } else {
      for (const std::int32_t key : a.keys) a.value_factor.push_back(head_->value_factor[static_cast<std::size_t>(key)]);
    }
  }
  const std::size_t dv = static_cast<std::size_t>(head_->dim_v);
  const double tiles = static_cast<double>(end_tile_ - first_tile_);
  const double unit32 = (p.descale == Descale::kBlock ? head_->value_factor_unit : std::abs(factor)) / a.denominator *
                        (1 + 2 * gamma32(static_cast<double>(kKeyTile) + tiles + 1)) * (1 + 0x1p-40);
  const double lost = static_cast<double>(a.keys.size()) * kWeightFloor / a.denominator;
  a.o.resize(dv);
  a.abs_p.resize(dv);
  for (std::size_t c = 0; c < dv; ++c) {
    a.o[c] = o_[r * o_stride_ + c] / a.denominator * factor;
    a.abs_p[c] = static_cast<double>(abs_[r * o_stride_ + c]) * head_->v_abs_unit[c] * unit32 + lost * head_->v_max[c];
  }
  set_radius(p, line.errors, a);
}

/// Channels with a value that is not zero among the row's keys. A sum of magnitudes above zero shows it; else a weight may have been
/// too small.
std::vector<bool> Strip::nonzero_channels(std::size_t r, const RowAnalysis& a) const {
  const std::size_t dv = a.o.size();
  std::vector<bool> nonzero(dv);
  if (head_->value_factor.size() == 1 && head_->value_factor[0] == 0) return nonzero;
  for (std::size_t c = 0; c < dv; ++c) {
    nonzero[c] = abs_[r * o_stride_ + c] > 0;
    if (nonzero[c] || head_->v_max[c] == 0) continue;
    for (const std::int32_t key : a.keys) {
      const double factor = head_->value_factor[head_->value_factor.size() > 1 ? static_cast<std::size_t>(key) : 0];
      if (factor * head_->v[static_cast<std::size_t>(key) * dv + c] != 0) {
        nonzero[c] = true;
        break;
      }
    }
  }
  return nonzero;
}

/// o is the mean of all values of the sequence, whatever the row admits.
void Strip::take_mean(std::size_t r, RowTruth& truth, const Visit& visit) {
  if (!mean_) {
    mean_ = std::make_unique<Strip>(problem_);
    mean_->uniform_ = true;
  }
  const AttentionRow row = lines_[r].row;
  mean_->evaluate(*head_, {&row, 1}, [&](std::size_t, RowTruth& mean, RowAnalysis* a) {
    truth.o_mid = std::move(mean.o_mid);
    truth.o_radius = std::move(mean.o_radius);
    for (std::size_t c = 0; c < truth.o_classes.size(); ++c) truth.o_classes[c] |= mean.o_classes[c];
    visit(r, truth, a);
  });
}

}  // namespace assay
