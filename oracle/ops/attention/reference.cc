// Attention as the paper writes it, in ball arithmetic: slow and certified.
//
//   s_j = q . k_j          x_j = scale s_j + bias_j                 over the admissible keys j
//   m   ~ max_j x_j        (any m gives the same o; this one makes l >= 1, nearly)
//   p_j = exp(x_j - m)     l = sum_j p_j
//   o_c = sum_j p_j v_jc / l          lse = m + log l
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
  Logits(const AttentionProblem& problem, const AttentionRow& row)
      : problem_(problem), row_(row), scale_(static_cast<double>(problem.params().scale)) {
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
    const double bias = problem_.bias(row_, key);
    if (special != 0) return {special * scale_ + bias, {}};
    if (!std::isfinite(bias)) return {bias, {}};
    const Ball s = dot(Ball(), q_balls_, k_balls_);
    return {0, Ball(scale_) * s + Ball(bias)};
  }

 private:
  const AttentionProblem& problem_;
  const AttentionRow& row_;
  const double scale_;
  std::vector<double> q_, k_;
  std::vector<Ball> q_balls_, k_balls_;
};

/// What a channel of v holds among the keys that count.
struct Channel {
  bool nan = false, plus_inf = false, minus_inf = false, nonzero = false;
  void see(double v) {
    nan = nan || std::isnan(v);
    plus_inf = plus_inf || v == kInfinity;
    minus_inf = minus_inf || v == -kInfinity;
    nonzero = nonzero || v != 0;
  }
  ClassSet classes() const {
    if (nan || (plus_inf && minus_inf)) return kNan;
    if (plus_inf) return kPlusInf;
    if (minus_inf) return kMinusInf;
    return nonzero ? kNumber : kZero;
  }
};

/// sum_j w_j v_j over `keys`, into o[dv], with the classes of its channels; non-finite v are left out of the sum.
void weighted_sum(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                  const std::vector<Ball>& weights, RowBalls& out) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  std::vector<Channel> channels(dv);
  std::vector<double> v(dv);
  std::vector<Ball> v_balls(std::min(keys.size(), kChunk) * dv);
  for (std::size_t first = 0; first < keys.size(); first += kChunk) {
    const std::size_t count = std::min(kChunk, keys.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      problem.load_v(row.batch, problem.kv_head(row.head), keys[first + j], v);
      for (std::size_t c = 0; c < dv; ++c) {
        channels[c].see(v[c]);
        v_balls[j * dv + c] = std::isfinite(v[c]) ? v[c] : 0.0;
      }
    }
    const std::span<const Ball> p = std::span(weights).subspan(first, count);
    for (std::size_t c = 0; c < dv; ++c) out.o[c] = dot(out.o[c], p, std::span<const Ball>(v_balls).subspan(c), dv);
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

/// Keys of weight 0 whose v is not finite: a kernel that multiplies by that 0 gets NaN (rule 4).
void allow_nan_of_zero_weights(const AttentionProblem& problem, const AttentionRow& row,
                               const std::vector<std::int32_t>& weighted, const std::vector<std::int32_t>& admissible,
                               RowBalls& out) {
  const bool masked = problem.params().masked_nonfinite == MaskedNonfinite::kPropagates;
  std::vector<double> v(out.o.size());
  for (std::int32_t j = 0; j < problem.kv_len(row.batch); ++j) {
    if (std::binary_search(weighted.begin(), weighted.end(), j)) continue;
    if (!masked && !std::binary_search(admissible.begin(), admissible.end(), j)) continue;
    problem.load_v(row.batch, problem.kv_head(row.head), j, v);
    for (std::size_t c = 0; c < v.size(); ++c)
      if (!std::isfinite(v[c])) out.o_classes[c] = static_cast<ClassSet>(out.o_classes[c] | kNan);
  }
}

/// Rule 4: at least one finite logit, none NaN or +inf.
void softmax_row(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 const std::vector<Ball>& x, RowBalls& out) {
  const auto [least, largest] = std::minmax_element(x.begin(), x.end(), midpoint_less);
  const Ball m = largest->midpoint();
  std::vector<Ball> p(x.size());
  Ball& l = out.l;
  Ball l2;
  for (std::size_t j = 0; j < x.size(); ++j) {
    p[j] = exp(x[j] - m);
    l += p[j];
    l2 += p[j] * p[j];
  }
  weighted_sum(problem, row, keys, p, out);
  for (Ball& o : out.o) o /= l;
  const Ball lse = m + log(l);
  out.lse = problem.params().lse == LseBase::kTwo ? lse / log(Ball(2.0)) : lse;
  out.lse_classes = kNumber;
  out.facts.max_logit = m.to_double().mid;
  out.facts.min_logit = least->to_double().mid;
  out.facts.lse = lse.to_double().mid;
  out.facts.effective_keys = (l * l / l2).to_double().mid;
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
  if (keys.empty()) {  // rule 1
    declared_empty_output(problem, row, out);
    out.lse_classes = declared_empty_lse(problem);
    return out;
  }

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

  if (any_nan || any_plus_inf) {  // rule 2
    std::fill(out.o_classes.begin(), out.o_classes.end(), kNan);
    out.lse_classes = any_nan ? kNan : kNan | kPlusInf;
    out.facts.max_logit = out.facts.lse = kNotANumber;
    if (!x.empty()) out.facts.min_logit = std::min_element(x.begin(), x.end(), midpoint_less)->to_double().mid;
  } else if (x.empty()) {  // rule 3
    declared_empty_output(problem, row, out);
    add_class(out.o_classes, kNan);
    out.lse_classes = static_cast<ClassSet>(kNan | kMinusInf | declared_empty_lse(problem));
  } else {  // rule 4
    softmax_row(problem, row, finite_keys, x, out);
    allow_nan_of_zero_weights(problem, row, finite_keys, keys, out);
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
