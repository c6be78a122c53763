// Attention under planted faults of any size: the exact fp64 answer of a kernel with that fault and no other error.
//
// A row is weights w_j = e^(x_j - top) over its keys; N_c = sum w_j f_j v_jc, L = sum w_j, D = L + e^(sink - top); o =
// N / D and lse = top + log L (or log D). Every fault but the scale's changes N, L and D by one weighted vector:
//   dropped key, lost tile   minus size sum w_j (f_j v_j, 1, 1) over its keys: of the row's keys or tiles of 64 the
//   most visible,
//                            whose whole loss would move o furthest
//   ghost key                plus size e^-top (0, 1, 1)
//   mask shift               plus size e^(x_e - top) (f_e v_e, 1, 1), e the key just beyond the causal or window edge
//   gain                     o (1 + size), LSE untouched
//   scale error              scale (1 + size)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "oracle/exp64.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr std::int32_t kTile = 64;

enum Fault : std::size_t { kDroppedKey, kGhostKey, kScaleError, kMaskShift, kGain, kLostTile };

ASSAY_HOT void add_scaled(double weight, const double* v, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += weight * v[c];
}

/// max_c |scale v_c - o_c|
ASSAY_HOT double largest_deviation(double scale, const double* v, const double* o, std::size_t n) {
  double largest = 0;
  for (std::size_t c = 0; c < n; ++c) largest = std::max(largest, std::abs(scale * v[c] - o[c]));
  return largest;
}

/// log(e^a + e^b)
double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == -kInf ? high : high + log64(1 + exp64(low - high));
}

/// Keys of a row that a fault takes away: a range of its list of keys, and their weight over D.
struct Part {
  std::size_t begin = 0, end = 0;
  double weight = 0;
};

class Planter {
 public:
  explicit Planter(const Problem& problem) : problem_(problem), params_(problem_.params()), counterfactual_(problem_) {}

  std::size_t rows() const { return problem_.rows().size(); }
  std::size_t dim_v() const { return static_cast<std::size_t>(params_.dim_v); }
  bool has_lse() const { return problem_.lse_layout() != nullptr; }

  struct Values {
    std::vector<double> o;
    double lse = kNone;
  };
  /// Nothing where the row has no softmax, or nothing that the fault could touch.
  std::optional<Values> plant(std::size_t row, std::size_t fault, double size);
  FaultSite site(std::size_t row, std::size_t fault);

 private:
  bool load(std::size_t row, double gain);
  double logit(std::int32_t key) { return counterfactual_.logits(row_, {key}).front(); }
  const double* value(std::int32_t key) const {
    return counterfactual_.head().v.data() + static_cast<std::size_t>(key) * dim_v();
  }
  void read_value(std::int32_t key, std::vector<double>& v) const;
  /// The key just beyond the right edge, else the left one, unless something else masks it.
  std::optional<std::int32_t> edge_key() const;
  double add_keys(std::size_t begin, std::size_t end, double factor, std::vector<double>& sum) const;
  Part most_visible(bool tiles) const;
  Values result() const;
  Values without(const Part& part, double share) const;
  Values with(double x, const std::vector<double>& v, double share) const;
  double in_base(double lse) const { return params_.lse == LseBase::kTwo ? lse / kLn2 : lse; }
  double counted(double keys) const { return params_.sink == Sink::kInLse ? keys + sink_ : keys; }

  const AttentionProblem problem_;
  const AttentionParams& params_;
  Counterfactual counterfactual_;
  AttentionRow row_;
  std::vector<std::int32_t> admissible_, keys_;
  std::vector<double> p_;  ///< weights over D, parallel to keys_
  std::vector<double> o_;
  double top_ = 0, keys_sum_ = 0, sink_ = 0;  ///< L and e^(sink - top), both over D
  double log_denominator_ = 0;                ///< top + log D
};

bool Planter::load(std::size_t row, double gain) {
  row_ = problem_.rows()[row];
  problem_.admissible_keys(row_, admissible_);
  const std::vector<double> logits = counterfactual_.logits(row_, admissible_, {.gain = gain});
  keys_.clear();
  p_.clear();
  const double sink = problem_.sink(row_);
  top_ = -kInf;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i];
    if (!(x < kInf)) return false;
    if (x == -kInf) continue;
    keys_.push_back(admissible_[i]);
    p_.push_back(x);
    top_ = std::max(top_, x);
  }
  if (keys_.empty() || !(sink < kInf)) return false;
  top_ = std::max(top_, sink);
  keys_sum_ = 0;
  for (double& p : p_) keys_sum_ += p = exp64(p - top_);
  sink_ = exp64(sink - top_);
  const double denominator = keys_sum_ + sink_;
  log_denominator_ = top_ + log64(denominator);
  keys_sum_ /= denominator;
  sink_ /= denominator;
  for (double& p : p_) p /= denominator;
  o_.assign(dim_v(), 0.0);
  add_keys(0, keys_.size(), 1, o_);
  return true;
}

void Planter::read_value(std::int32_t key, std::vector<double>& v) const {
  v.resize(dim_v());
  problem_.load_v(row_.batch, problem_.kv_head(row_.head), key, v);
  for (double& value : v) value *= problem_.value_factor(row_, key);
}

std::optional<std::int32_t> Planter::edge_key() const {
  const auto [first, end] = problem_.key_span(row_);
  const bool right = (params_.causal || params_.window_right >= 0) && end < problem_.kv_len(row_.batch);
  const std::int64_t key = right ? end : params_.window_left >= 0 ? first - 1 : -1;
  if (key < 0 || !problem_.kept_by_data(row_, key)) return std::nullopt;
  return static_cast<std::int32_t>(key);
}

/// Adds factor sum p_j f_j v_j over keys_[begin, end) to `sum` and returns factor sum p_j.
double Planter::add_keys(std::size_t begin, std::size_t end, double factor, std::vector<double>& sum) const {
  double weight = 0;
  for (std::size_t j = begin; j < end; ++j) {
    weight += p_[j];
    if (p_[j] != 0)
      add_scaled(factor * p_[j] * problem_.value_factor(row_, keys_[j]), value(keys_[j]), dim_v(), sum.data());
  }
  return factor * weight;
}

/// The key or tile whose loss would move o furthest: by |N_part - p o| / (1 - p); among equals the heaviest.
Part Planter::most_visible(bool tiles) const {
  double farthest = -1;
  Part best;
  std::vector<double> values;
  for (std::size_t begin = 0, end; begin < keys_.size(); begin = end) {
    end = begin + 1;
    while (tiles && end < keys_.size() && keys_[end] / kTile == keys_[begin] / kTile) ++end;
    values.assign(dim_v(), 0.0);
    const double weight = add_keys(begin, end, 1, values);
    double moved = kInf;
    if (weight < 1)
      moved = weight > 0 ? largest_deviation(1 / weight, values.data(), o_.data(), dim_v()) * weight / (1 - weight) : 0;
    if (moved > farthest || (moved == farthest && weight > best.weight)) farthest = moved, best = {begin, end, weight};
  }
  return best;
}

Planter::Values Planter::result() const {
  return {o_, in_base(params_.sink == Sink::kInLse ? log_denominator_ : log_denominator_ + log64(keys_sum_))};
}

/// The sums over the other keys are made anew: what is left may be any small part of what there was.
Planter::Values Planter::without(const Part& part, double share) const {
  Values out{std::vector<double>(dim_v(), 0.0), -kInf};
  double left = add_keys(0, part.begin, 1, out.o) + add_keys(part.end, keys_.size(), 1, out.o);
  left += add_keys(part.begin, part.end, 1 - share, out.o);
  const bool nothing = share >= 1 && part.begin == 0 && part.end == keys_.size();
  if (left + sink_ > 0)
    for (double& o : out.o) o /= left + sink_;
  else if (!nothing)  // weights beyond fp64's range
    return {std::vector<double>(dim_v(), kNone), kNone};
  if (counted(left) > 0) out.lse = in_base(log_denominator_ + log64(counted(left)));
  return out;
}

/// `share` more keys of logit x and value v.
Planter::Values Planter::with(double x, const std::vector<double>& v, double share) const {
  const double ratio = x - log_denominator_;  // log of the key's weight over D
  const double shrink = exp64(-std::max(ratio, 0.0)), weight = share * exp64(std::min(ratio, 0.0));
  Values out{o_, 0};
  for (std::size_t c = 0; c < out.o.size(); ++c) out.o[c] = (o_[c] * shrink + weight * v[c]) / (shrink + weight);
  out.lse = in_base(log_add(log_denominator_ + log64(counted(keys_sum_)), x + log64(share)));
  return out;
}

std::optional<Planter::Values> Planter::plant(std::size_t row, std::size_t fault, double size) {
  if (!load(row, fault == kScaleError ? 1 + size : 1.0)) return std::nullopt;
  if (fault == kDroppedKey || fault == kLostTile)
    return size == 0 ? result() : without(most_visible(fault == kLostTile), size);
  if (fault == kGhostKey) return size == 0 ? result() : with(0, std::vector<double>(dim_v(), 0.0), size);
  if (fault == kMaskShift) {
    const std::optional<std::int32_t> key = edge_key();
    const double x = key ? logit(*key) : kNone;
    if (!(x < kInf)) return std::nullopt;
    std::vector<double> v;
    read_value(*key, v);
    for (double& value : v)
      if (!std::isfinite(value)) value = kNone;
    return size == 0 || x == -kInf ? result() : with(x, v, size);
  }
  Values out = result();
  if (fault == kGain) {
    for (double& o : out.o) o *= 1 + size;
    out.lse = kNone;
  }
  return out;
}

FaultSite Planter::site(std::size_t row, std::size_t fault) {
  if (!load(row, 1)) return {};
  if (fault == kDroppedKey || fault == kLostTile) {
    const Part part = most_visible(fault == kLostTile);
    const std::int32_t first = keys_[part.begin], last = keys_[part.end - 1];
    return {fault == kLostTile ? fmt::format("keys {} to {}", first, last) : fmt::format("key {}", first), part.weight};
  }
  if (fault == kGhostKey) return {"a key of logit 0", exp64(-log_denominator_)};
  if (const std::optional<std::int32_t> key = edge_key(); fault == kMaskShift && key)
    return {fmt::format("key {}", *key), exp64(logit(*key) - log_denominator_)};
  return {};
}

}  // namespace

std::vector<PlantedFault> attention_planted_faults() {
  return {{"dropped key", "of the key's weight", 1},
          {"ghost key", "keys of logit 0 and value 0", 0x1p20},
          {"scale error", "relative", 1},
          {"mask shift", "of the weight of one key beyond the edge", 1},
          {"gain", "relative", 1},
          {"lost tile", "of the weight of 64 keys", 1}};
}

PlantedOutputs attention_plant(const Problem& raw, std::size_t fault, double size) {
  Planter planter(raw);
  const std::size_t dv = planter.dim_v();
  PlantedOutputs outputs(planter.has_lse() ? 2 : 1);
  bool any = false;
  for (std::size_t r = 0; r < planter.rows(); ++r) {
    const std::optional<Planter::Values> row = planter.plant(r, fault, size);
    any = any || row;
    if (row)
      outputs[0].insert(outputs[0].end(), row->o.begin(), row->o.end());
    else
      outputs[0].resize(outputs[0].size() + dv, kNone);
    if (planter.has_lse()) outputs[1].push_back(row ? row->lse : kNone);
  }
  return any ? outputs : PlantedOutputs{};
}

FaultSite attention_fault_site(const Problem& raw, std::size_t fault, std::size_t row) {
  return Planter(raw).site(row, fault);
}

}  // namespace assay
