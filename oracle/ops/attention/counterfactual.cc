// Plain fp64 attention of one row; without a radius, since it is only compared with outputs or acceptance sets.
#include "oracle/ops/attention/counterfactual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of heads, and of scores

}  // namespace

double Counterfactual::logit(const AttentionRow& row, std::int32_t key, double score,
                             const Hypothesis& hypothesis) const {
  const AttentionParams& p = problem_.params();
  const double factor = hypothesis.descale ? problem_.score_factor(row, key) : static_cast<double>(p.scale);
  const double y = hypothesis.gain * factor * score;
  const double cap = hypothesis.softcap ? static_cast<double>(p.softcap) : 0.0;
  const double x = (cap != 0 ? cap * tanh64(y / cap) : y) +
                   (hypothesis.alibi ? problem_.bias(row, key) : problem_.additive(row, key));
  return hypothesis.see_logit ? hypothesis.see_logit(key, x) : x;
}

const HeadOperands& Counterfactual::operands(std::int64_t batch, std::int64_t kv_head) {
  const auto found = heads_.find({batch, kv_head});
  if (found != heads_.end()) return found->second;
  if (head_bytes_ > kMostBytes) heads_.clear(), head_bytes_ = 0, head_ = nullptr;
  HeadOperands& head = heads_[{batch, kv_head}];
  load_head(problem_, batch, kv_head, head);
  head_bytes_ += head.k_panels.size() * 4 + head.v.size() * 8 + head.v_panels.size() * 4 + head.v_abs.size() * 4;
  return head;
}

const std::vector<double>& Counterfactual::scores(const AttentionRow& row, const Hypothesis& hypothesis) {
  const std::int64_t q_head = hypothesis.q_head >= 0 ? hypothesis.q_head : row.head;
  const std::int64_t kv_head = hypothesis.k_head >= 0 ? hypothesis.k_head : problem_.kv_head(row.head);
  const auto found = scores_.find({row.batch, q_head, row.query, kv_head});
  if (found != scores_.end()) return found->second;
  if (score_bytes_ > kMostBytes) scores_.clear(), score_bytes_ = 0;
  std::vector<double>& score = scores_[{row.batch, q_head, row.query, kv_head}];
  q_.resize(static_cast<std::size_t>(problem_.params().dim_qk));
  problem_.load_q({row.batch, q_head, row.query}, q_);
  head_scores(operands(row.batch, kv_head), q_, score, magnitude_);
  score_bytes_ += score.size() * sizeof(double);
  return score;
}

std::vector<double> Counterfactual::logits(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                           const Hypothesis& hypothesis) {
  const std::vector<double>& score = scores(row, hypothesis);
  head_ = &operands(row.batch, problem_.kv_head(row.head));
  std::vector<double> x(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    x[i] = logit(row, keys[i], score[static_cast<std::size_t>(keys[i])], hypothesis);
  return x;
}

RowOutput Counterfactual::mix(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                              std::span<const double> numerator, std::span<const double> denominator, double frame,
                              const Hypothesis& hypothesis) {
  const AttentionParams& p = problem_.params();
  const auto dv = static_cast<std::size_t>(p.dim_v);
  const std::int64_t v_head = hypothesis.v_head >= 0 ? hypothesis.v_head : problem_.kv_head(row.head);
  const HeadOperands& head = operands(row.batch, v_head);
  const double sink = hypothesis.sink ? problem_.sink(row) : -kInfinity;
  RowOutput out{std::vector<double>(dv, 0.0), 0, std::vector<double>(dv, 0.0)};
  double l = hypothesis.ghosts == 0 ? 0 : hypothesis.ghosts * exp64(hypothesis.ghost_logit - frame);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    l += denominator[i];
    if (numerator[i] == 0) continue;
    const double* v = head.v.data() + static_cast<std::size_t>(keys[i]) * dv;
    const double weight = numerator[i] * (hypothesis.descale ? problem_.value_factor(row, keys[i]) : 1.0);
    for (std::size_t c = 0; c < dv; ++c) {
      const double part = weight * (hypothesis.see_v ? hypothesis.see_v(v[c]) : v[c]);
      out.o[c] += part;
      out.spread[c] += part * part;
    }
  }
  const double all = l + (sink == -kInfinity ? 0.0 : exp64(sink - frame));
  for (std::size_t c = 0; c < dv; ++c) {
    out.o[c] = out.o[c] / all * hypothesis.output_gain;
    out.spread[c] /= all * all;
  }
  if (!head.special_v.empty()) add_special(row, head, v_head, keys, numerator, out);
  out.lse = frame + log64(p.sink == Sink::kInLse ? all : l);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

/// Values that are no numbers, which the operands hold as zeros.
void Counterfactual::add_special(const AttentionRow& row, const HeadOperands& head, std::int64_t v_head,
                                 const std::vector<std::int32_t>& keys, std::span<const double> numerator,
                                 RowOutput& out) {
  std::vector<double> v(out.o.size());
  out.or_nan.assign(out.o.size(), false);
  for (const std::int32_t key : head.special_v) {
    problem_.load_v(row.batch, v_head, key, v);
    const auto found = std::lower_bound(keys.begin(), keys.end(), key);
    const bool taken = found != keys.end() && *found == key;
    for (std::size_t c = 0; c < v.size(); ++c) {
      if (std::isfinite(v[c])) continue;
      if (taken) out.o[c] += v[c] * numerator[static_cast<std::size_t>(found - keys.begin())];
      out.or_nan[c] = true;
    }
  }
}

RowOutput Counterfactual::attend(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                 const Hypothesis& hypothesis) {
  std::vector<double> x = logits(row, keys, hypothesis);
  if (std::any_of(x.begin(), x.end(), [](double logit) { return std::isnan(logit); })) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {std::vector<double>(static_cast<std::size_t>(problem_.params().dim_v), nan), nan};
  }
  double m = hypothesis.sink ? problem_.sink(row) : -kInfinity;
  if (hypothesis.ghosts > 0) m = std::max(m, hypothesis.ghost_logit);
  for (const double logit : x) m = std::max(m, logit);
  if (m == -kInfinity) return {std::vector<double>(static_cast<std::size_t>(problem_.params().dim_v), 0.0), m};
  for (double& weight : x) weight = exp64(weight - m);
  RowOutput out = mix(row, keys, x, x, m, hypothesis);
  if (passes_fp32(row, keys, hypothesis)) {
    out.or_nan.assign(out.o.size(), true);
    out.lse_or_nan = true;
  }
  return out;
}

bool Counterfactual::passes_fp32(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                 const Hypothesis& hypothesis) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const std::vector<double>& score = scores(row, hypothesis);
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::int32_t key) { return std::abs(score[static_cast<std::size_t>(key)]) > kLargest; });
}

}  // namespace assay
