// Attention as the paper writes it, in ball arithmetic: slow and certified.
//
//   s_j = q . k_j          x_j = cap(f_j s_j) + bias_j              over the admissible keys j; f_j, cap, w_j as in
//   row_truth.h m   ~ max_j x_j        (any m gives the same o; this one, or the sink's logit if larger, makes l + sink
//   >= 1, nearly) p_j = exp(x_j - m)     l = sum_j p_j o_c = sum_j p_j w_jc / (l + exp(sink - m))          lse = m +
//   log(l), or of l + exp(sink - m)
#include "oracle/ops/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr int kResolved = -60;       // log2 of the largest relative radius that needs no more precision
constexpr std::size_t kChunk = 256;  // keys whose v is held as balls at once

/// A logit is x, or `special` (an infinity or NaN) if that is not 0.
struct Logit {
  double special = 0;
  Ball x;
};

/// Infinities and NaNs among operands decide the class of s_j and x_j whatever the finite terms are, and IEEE double
/// arithmetic on just those terms applies the rules inf * 0 = NaN and inf - inf = NaN.
class Logits {
 public:
  Logits(const AttentionProblem& problem, const AttentionRow& row) : problem_(problem), row_(row) {
    const auto d = static_cast<std::size_t>(problem.params().dim_qk);
    q_.resize(d);
    k_.resize(d);
    q_balls_.resize(d);
    k_balls_.resize(d);
    problem.load_q(row, q_);
    for (std::size_t c = 0; c < d; ++c)
      if (std::isfinite(q_[c])) q_balls_[c] = q_[c];
  }

  Logit operator()(std::int64_t key) {
    problem_.load_k(row_.batch, problem_.kv_head(row_.head), key, k_);
    double special = 0;
    for (std::size_t c = 0; c < q_.size(); ++c) {
      if (std::isfinite(q_[c]) && std::isfinite(k_[c])) {
        k_balls_[c] = k_[c];
      } else {
        k_balls_[c] = 0.0;
        special += q_[c] * k_[c];
      }
    }
    const AttentionProblem::Factors f = problem_.factors(row_, key);
    const double alibi = problem_.alibi(row_, key), additive = problem_.additive(row_, key), bias = alibi + additive;
    const double softcap = static_cast<double>(problem_.params().softcap);
    const bool infinite_factor = !std::isfinite(f.scale_q) || !std::isfinite(f.k);
    if (infinite_factor && special == 0)
      special = f.scale_q * f.k * sign_of_score();
    else if (special != 0)
      special *= f.scale_q * f.k;
    scaled_infinity_ = scaled_infinity_ || infinite_factor;
    Ball y;
    if (special != 0) {
      if (std::isnan(special) || softcap == 0) return {special + bias, {}};
      capped_infinity_ = true;
      y = special > 0 ? softcap : -softcap;
    } else {
      y = Ball(f.scale_q) * Ball(f.k) * dot(Ball(), q_balls_, k_balls_);
      if (softcap != 0) y = Ball(softcap) * tanh(y / Ball(softcap));
    }
    if (!std::isfinite(bias)) return {bias, {}};
    return {0, y + Ball(alibi) + Ball(additive)};
  }

  /// Whether some y_j was infinite under a soft cap; whether some f_j was infinite or NaN.
  bool capped_infinity() const { return capped_infinity_; }
  bool scaled_infinity() const { return scaled_infinity_; }

 private:
  /// Of the finite s_j at hand. At 1024 bits every sum of products of two fp32 numbers is exact: they are multiples of
  /// 2^-298 below 2^256 (and so are those of the shorter formats).
  double sign_of_score() const {
    const Precision exact(kLargestPrecision);
    const Ball s = dot(Ball(), q_balls_, k_balls_);
    return s.midpoint_is_zero() ? 0.0 : certainly_less(s, Ball()) ? -1.0 : 1.0;
  }

  const AttentionProblem& problem_;
  const AttentionRow& row_;
  std::vector<double> q_, k_;
  std::vector<Ball> q_balls_, k_balls_;
  bool capped_infinity_ = false, scaled_infinity_ = false;
};

/// What a channel holds among the keys that count.
struct Channel {
  bool nan_operand = false, infinite_factor = false;
  bool nan = false, plus_inf = false, minus_inf = false, nonzero = false;
  void see(double factor, double v) {
    const double w = factor * v;  // 24 bits times at most 24
    nan_operand = nan_operand || std::isnan(factor) || std::isnan(v);
    infinite_factor = infinite_factor || std::isinf(factor);
    nan = nan || std::isnan(w);
    plus_inf = plus_inf || w == kInfinity;
    minus_inf = minus_inf || w == -kInfinity;
    nonzero = nonzero || w != 0;
  }
  ClassSet classes() const {
    if (nan_operand) return kNan;
    if (infinite_factor) return kPlusInf | kMinusInf | kNan;  // rule 9
    if (nan || (plus_inf && minus_inf)) return kNan;
    if (plus_inf) return kPlusInf;
    if (minus_inf) return kMinusInf;
    return nonzero ? kNumber : kZero;
  }
};

/// sum_j p_j w_j over `keys`, into o[dv], with the classes of its channels; non-finite w are left out of the sum.
void weighted_sum(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                  const std::vector<Ball>& weights, RowBalls& out) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  std::vector<Channel> channels(dv);
  std::vector<double> v(dv);
  std::vector<Ball> w_balls(std::min(keys.size(), kChunk) * dv);
  for (std::size_t first = 0; first < keys.size(); first += kChunk) {
    const std::size_t count = std::min(kChunk, keys.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      problem.load_v(row.batch, problem.kv_head(row.head), keys[first + j], v);
      const double factor = problem.value_factor(row, keys[first + j]);
      for (std::size_t c = 0; c < dv; ++c) {
        channels[c].see(factor, v[c]);
        const double w = factor * v[c];
        w_balls[j * dv + c] = std::isfinite(w) ? w : 0.0;
      }
    }
    const std::span<const Ball> p = std::span(weights).subspan(first, count);
    for (std::size_t c = 0; c < dv; ++c) out.o[c] = dot(out.o[c], p, std::span<const Ball>(w_balls).subspan(c), dv);
  }
  for (std::size_t c = 0; c < dv; ++c) out.o_classes[c] = channels[c].classes();
}

/// The declared o of a row without admissible key.
void declared_empty_output(const AttentionProblem& problem, const AttentionRow& row, RowBalls& out) {
  const std::int64_t n = problem.kv_len(row.batch);
  const EmptyOutput declared = problem.params().empty_output;
  if (declared != EmptyOutput::kMean || n == 0) {
    std::fill(out.o_classes.begin(), out.o_classes.end(), declared == EmptyOutput::kNan ? kNan : kZero);
    return;
  }
  std::vector<std::int32_t> keys(static_cast<std::size_t>(n));
  for (std::size_t j = 0; j < keys.size(); ++j) keys[j] = static_cast<std::int32_t>(j);
  weighted_sum(problem, row, keys, std::vector<Ball>(keys.size(), Ball(1.0)), out);
  for (Ball& o : out.o) o /= Ball(static_cast<double>(n));
}

ClassSet declared_empty_lse(const AttentionProblem& problem) {
  return problem.params().empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf;
}

void add_class(std::vector<ClassSet>& classes, ClassSet more) {
  for (ClassSet& set : classes) set = static_cast<ClassSet>(set | more);
}

/// Keys of weight 0 whose w is not finite: a kernel that multiplies by that 0 gets NaN (rule 4).
void allow_nan_of_zero_weights(const AttentionProblem& problem, const AttentionRow& row,
                               const std::vector<std::int32_t>& weighted, const std::vector<std::int32_t>& admissible,
                               RowBalls& out) {
  const bool masked = problem.params().masked_nonfinite == MaskedNonfinite::kPropagates;
  std::vector<double> v(out.o.size());
  for (std::int32_t j = 0; j < problem.kv_len(row.batch); ++j) {
    if (std::binary_search(weighted.begin(), weighted.end(), j)) continue;
    if (!masked && !std::binary_search(admissible.begin(), admissible.end(), j)) continue;
    problem.load_v(row.batch, problem.kv_head(row.head), j, v);
    const double factor = problem.value_factor(row, j);
    for (std::size_t c = 0; c < v.size(); ++c)
      if (!std::isfinite(factor * v[c])) out.o_classes[c] = static_cast<ClassSet>(out.o_classes[c] | kNan);
  }
}

void set_lse(const AttentionProblem& problem, const Ball& natural, RowBalls& out) {
  out.lse = problem.params().lse == LseBase::kTwo ? natural / log(Ball(2.0)) : natural;
  out.lse_classes = kNumber;
  out.facts.lse = natural.to_double().mid;
}

/// Rule 4: at least one finite logit, none NaN or +inf. With the sink's weight, if that is finite.
void softmax_row(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 const std::vector<Ball>& x, RowBalls& out) {
  const auto [least, largest] = std::minmax_element(x.begin(), x.end(), midpoint_less);
  const double sink = problem.sink(row);
  Ball m = largest->midpoint();
  if (std::isfinite(sink) && midpoint_less(m, Ball(sink))) m = sink;
  std::vector<Ball> p(x.size());
  Ball& l = out.l;
  Ball l2;
  for (std::size_t j = 0; j < x.size(); ++j) {
    p[j] = exp(x[j] - m);
    l += p[j];
    l2 += p[j] * p[j];
  }
  const Ball denominator = std::isfinite(sink) ? l + exp(Ball(sink) - m) : l;
  weighted_sum(problem, row, keys, p, out);
  for (Ball& o : out.o) o /= denominator;
  set_lse(problem, m + log(problem.params().sink == Sink::kInLse ? denominator : l), out);
  out.facts.max_logit = largest->midpoint().to_double().mid;
  out.facts.min_logit = least->to_double().mid;
  out.facts.effective_keys = (l * l / l2).to_double().mid;
}

/// Rule 5: only the finite sink has weight.
void sink_alone(const AttentionProblem& problem, double sink, bool has_keys, RowBalls& out) {
  std::fill(out.o_classes.begin(), out.o_classes.end(), kZero);
  if (problem.params().sink == Sink::kInLse) {
    set_lse(problem, Ball(sink), out);
  } else {
    out.lse_classes = declared_empty_lse(problem);
    if (has_keys) out.lse_classes |= kMinusInf;
  }
  if (!has_keys) return;
  add_class(out.o_classes, kNan);
  out.lse_classes |= kNan;
}

/// Rule 6, on top of what the row is without the sink.
void apply_infinite_sink(const AttentionProblem& problem, double sink, bool has_weights, RowBalls& out) {
  for (ClassSet& set : out.o_classes) {
    const bool finite = !has_weights || (set & (kNumber | kZero)) != 0;
    set = std::isnan(sink) || !finite ? kNan : kZero | kNan;
  }
  if (problem.params().sink == Sink::kOutOfLse) {
    out.lse_classes |= kNan;
    return;
  }
  out.lse_classes = std::isnan(sink) ? kNan : kPlusInf | kNan;
  out.facts.lse = sink;
}

bool is_resolved(const Ball& ball) { return ball.midpoint_is_zero() || ball.relative_radius_within(kResolved); }

bool is_resolved(const RowBalls& row) {
  if (!row.l.relative_radius_within(kResolved)) return false;
  if ((row.lse_classes & kNumber) != 0 && !is_resolved(row.lse)) return false;
  for (std::size_t c = 0; c < row.o.size(); ++c)
    if ((row.o_classes[c] & kNumber) != 0 && !is_resolved(row.o[c])) return false;
  return true;
}

RowTruth to_doubles(const RowBalls& balls) {
  RowTruth truth;
  truth.facts = balls.facts;
  truth.o_classes = balls.o_classes;
  truth.lse_classes = balls.lse_classes;
  for (std::size_t c = 0; c < balls.o.size(); ++c) {
    const Enclosure o = (balls.o_classes[c] & kNumber) != 0 ? balls.o[c].to_double() : Enclosure{};
    truth.o_mid.push_back(o.mid);
    truth.o_radius.push_back(o.radius);
  }
  const Enclosure lse = (balls.lse_classes & kNumber) != 0 ? balls.lse.to_double() : Enclosure{};
  truth.lse_mid = lse.mid;
  truth.lse_radius = lse.radius;
  return truth;
}

}  // namespace

RowBalls row_balls(const AttentionProblem& problem, const AttentionRow& row, int precision) {
  const Precision scope(precision);
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  RowBalls out;
  out.o.resize(dv);
  out.o_classes.assign(dv, kNumber);

  std::vector<std::int32_t> keys, finite_keys;
  problem.admissible_keys(row, keys);
  out.facts = {.batch = static_cast<std::int32_t>(row.batch),
               .head = static_cast<std::int32_t>(row.head),
               .query = static_cast<std::int32_t>(row.query),
               .keys = static_cast<std::int32_t>(keys.size()),
               .first_key = keys.empty() ? -1 : keys.front(),
               .last_key = keys.empty() ? -1 : keys.back(),
               .max_logit = -kInfinity,
               .min_logit = -kInfinity,
               .lse = -kInfinity,
               .effective_keys = 0,
               .escalated = true};

  Logits logit(problem, row);
  std::vector<Ball> x;
  bool any_nan = false, any_plus_inf = false;
  for (std::int32_t j : keys) {
    Logit value = logit(j);
    any_nan = any_nan || std::isnan(value.special);
    any_plus_inf = any_plus_inf || value.special == kInfinity;
    if (value.special != 0) continue;
    x.push_back(std::move(value.x));
    finite_keys.push_back(j);
  }

  const double sink = problem.sink(row);
  if (any_nan || any_plus_inf) {  // rule 2
    std::fill(out.o_classes.begin(), out.o_classes.end(), kNan);
    out.lse_classes = any_nan ? kNan : kNan | kPlusInf;
    out.facts.max_logit = out.facts.lse = kNotANumber;
    if (!x.empty()) out.facts.min_logit = std::min_element(x.begin(), x.end(), midpoint_less)->to_double().mid;
    return out;
  }
  if (!x.empty()) {  // rule 4
    softmax_row(problem, row, finite_keys, x, out);
    allow_nan_of_zero_weights(problem, row, finite_keys, keys, out);
  } else if (std::isfinite(sink)) {  // rule 5
    sink_alone(problem, sink, !keys.empty(), out);
    allow_nan_of_zero_weights(problem, row, finite_keys, keys, out);
  } else {
    declared_empty_output(problem, row, out);
    out.lse_classes = declared_empty_lse(problem);  // rule 1
    if (!keys.empty()) {                            // rule 3
      add_class(out.o_classes, kNan);
      out.lse_classes |= kNan | kMinusInf;
    }
  }
  if (std::isnan(sink) || sink == kInfinity) apply_infinite_sink(problem, sink, !x.empty(), out);  // rule 6
  if (logit.capped_infinity() || logit.scaled_infinity()) {                                        // rules 7 and 8
    add_class(out.o_classes, kNan);
    out.lse_classes |= kNan;
  }
  return out;
}

RowBalls resolved_row_balls(const AttentionProblem& problem, const AttentionRow& row, int precision) {
  RowBalls balls = row_balls(problem, row, precision);
  while (!is_resolved(balls) && precision < kLargestPrecision) {
    precision = std::min(2 * precision, kLargestPrecision);
    balls = row_balls(problem, row, precision);
  }
  return balls;
}

RowTruth reference_row(const AttentionProblem& problem, const AttentionRow& row, int precision) {
  return to_doubles(resolved_row_balls(problem, row, precision));
}

Truth attention_reference(const Problem& problem, int precision) {
  const AttentionProblem attention(problem);
  Truth truth = start_truth(attention);
  for (const AttentionRow& row : attention.rows())
    append(truth, attention, row, reference_row(attention, row, precision));
  return truth;
}

}  // namespace assay
