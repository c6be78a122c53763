// Softmax as the paper writes it, in ball arithmetic, with the online recurrence step by step.
//
//   t_j = scale x_j + mask_j      m ~ max_j t_j      p_j = exp(t_j - m)      l = sum_j p_j
//   y_j = p_j / l                 lse = m + log l
//   per step s, keys in order:    m_s = max(m_(s-1), t_j of the step)        l_s = l_(s-1) exp(m_(s-1) - m_s) + sum_j exp(t_j - m_s)
#include "oracle/ops/softmax/reference.h"

#include <algorithm>

#include "oracle/ops/softmax/layouts.h"

namespace assay {
namespace {

constexpr int kLargestPrecision = 1024;
constexpr int kResolved = -60;  // log2 of the largest relative radius that needs no more precision

std::vector<Ball> logits(const SoftmaxRow& row, const std::vector<std::int32_t>& finite) {
  std::vector<Ball> t;
  t.reserve(finite.size());
  for (std::int32_t i : finite)
    t.push_back(Ball(row.linear[static_cast<std::size_t>(i)]) + Ball(row.bias[static_cast<std::size_t>(i)]));
  return t;
}

/// Rules 2 and 4 leave the states of steps defined whose prefix holds finite logits.
void recurrence(const std::vector<Ball>& t, SoftmaxBalls& out) {
  Ball m, l;
  std::size_t at = 0;
  for (const std::size_t end : out.classified.step_finite) {
    if (end > at) {
      Ball largest = at > 0 ? m : t[0];
      for (std::size_t k = at; k < end; ++k) largest = max(largest, t[k]);
      if (at > 0) l *= exp(m - largest);
      for (; at < end; ++at) l += exp(t[at] - largest);
      m = largest;
    }
    out.m.push_back(m);
    out.l.push_back(l);
  }
}

void softmax(const SoftmaxParams& p, const SoftmaxRow& row, const std::vector<Ball>& t, SoftmaxBalls& out) {
  RowFacts& facts = out.classified.truth.facts;
  const auto [least, largest] = std::minmax_element(t.begin(), t.end(), midpoint_less);
  const Ball m = largest->midpoint();
  std::vector<Ball> weights;
  Ball l, squares;
  for (const Ball& x : t) {
    weights.push_back(exp(x - m));
    l += weights.back();
    squares += weights.back() * weights.back();
  }
  for (std::size_t k = 0; k < t.size(); ++k) {
    const auto i = static_cast<std::size_t>(out.classified.finite[k]);
    out.y[static_cast<std::size_t>(row.key[i])] = weights[k] / l;
  }
  const Ball lse = m + log(l);
  out.lse = p.lse == LseBase::kTwo ? lse / log(Ball(2.0)) : lse;
  facts.max_logit = m.to_double().mid;
  facts.min_logit = least->to_double().mid;
  facts.lse = lse.to_double().mid;
  facts.effective_keys = (l * l / squares).to_double().mid;
}

SoftmaxBalls balls_at(const SoftmaxProblem& problem, const SoftmaxRow& row, int precision) {
  const Precision scope(precision);
  const SoftmaxParams& p = problem.params();
  SoftmaxBalls out{.classified = classify(p, row), .y = {}, .lse = {}, .m = {}, .l = {}};
  out.classified.truth.facts.escalated = true;
  out.y.resize(static_cast<std::size_t>(p.n));
  for (std::size_t j = 0; j < out.y.size(); ++j)
    if (out.classified.truth.y_classes[j] & kNumber)
      out.y[j] = Ball(1.0) / Ball(static_cast<double>(p.n));  // kMean; else set below
  const std::vector<Ball> t = logits(row, out.classified.finite);
  recurrence(t, out);
  if (out.classified.has_numbers) softmax(p, row, t, out);
  return out;
}

/// A midpoint of 0 stands for 0 itself, or for weights below e^-(2^60).
bool is_resolved(const std::vector<Ball>& balls, const std::vector<ClassSet>& classes) {
  constexpr double kNothing = 0x1p-1000;
  for (std::size_t i = 0; i < balls.size(); ++i)
    if ((classes[i] & kNumber) && !balls[i].relative_radius_within(kResolved) &&
        !(balls[i].midpoint_is_zero() && balls[i].to_double().radius <= kNothing))
      return false;
  return true;
}

void to_doubles(const std::vector<Ball>& balls, const std::vector<ClassSet>& classes, std::vector<double>& mid,
                std::vector<double>& radius) {
  mid.assign(balls.size(), 0.0);
  radius.assign(balls.size(), 0.0);
  for (std::size_t i = 0; i < balls.size(); ++i) {
    if (!(classes[i] & kNumber)) continue;
    const Enclosure e = balls[i].to_double();
    mid[i] = e.mid;
    radius[i] = e.radius;
  }
}

}  // namespace

SoftmaxBalls softmax_balls(const SoftmaxProblem& problem, const SoftmaxRow& row, int precision) {
  for (;; precision = std::min(2 * precision, kLargestPrecision)) {
    SoftmaxBalls out = balls_at(problem, row, precision);
    const SoftmaxTruth& truth = out.classified.truth;
    if (precision >= kLargestPrecision ||
        (is_resolved(out.y, truth.y_classes) && is_resolved({out.lse}, {truth.lse_classes}) &&
         is_resolved(out.m, truth.m_classes) && is_resolved(out.l, truth.l_classes)))
      return out;
  }
}

SoftmaxTruth softmax_reference_row(const SoftmaxProblem& problem, const SoftmaxRow& row, int precision) {
  const SoftmaxBalls balls = softmax_balls(problem, row, precision);
  SoftmaxTruth truth = balls.classified.truth;
  to_doubles(balls.y, truth.y_classes, truth.y_mid, truth.y_radius);
  to_doubles(balls.m, truth.m_classes, truth.m_mid, truth.m_radius);
  to_doubles(balls.l, truth.l_classes, truth.l_mid, truth.l_radius);
  if (truth.lse_classes & kNumber) {
    const Enclosure e = balls.lse.to_double();
    truth.lse_mid = e.mid;
    truth.lse_radius = e.radius;
  }
  return truth;
}

Truth softmax_reference(const Problem& problem, int precision) {
  const SoftmaxProblem softmax(problem);
  Truth truth = start_truth(softmax);
  for (std::int64_t row = 0; row < softmax.params().rows; ++row)
    append(truth, softmax, row, softmax_reference_row(softmax, softmax.row(row), precision));
  return truth;
}

std::string softmax_digits(const Problem& problem, std::size_t output, std::int64_t index, int count) {
  constexpr int kBits = 256;
  const SoftmaxProblem softmax(problem);
  const bool has_lse = softmax.lse() != nullptr;
  const auto which = output == 0 ? 0 : output + (has_lse ? 0 : 1);  // 0 y, 1 lse, 2 m, 3 l
  const std::int64_t per_row = which == 0 ? softmax.params().n : which == 1 ? 1 : softmax.params().step_count();
  const SoftmaxBalls balls = softmax_balls(softmax, softmax.row(index / per_row), kBits);
  const SoftmaxTruth& truth = balls.classified.truth;
  const auto at = static_cast<std::size_t>(index % per_row);
  const auto text = [&](const Ball& ball, ClassSet classes) {
    return (classes & kNumber) ? ball.digits(count) : std::string();
  };
  switch (which) {
    case 0:
      return text(balls.y[at], truth.y_classes[at]);
    case 1:
      return text(balls.lse, truth.lse_classes);
    case 2:
      return text(balls.m[at], truth.m_classes[at]);
    default:
      return text(balls.l[at], truth.l_classes[at]);
  }
}

}  // namespace assay
