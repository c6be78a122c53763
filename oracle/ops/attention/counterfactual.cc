// Plain fp64 attention of one row; without a radius, since it is only compared with outputs or acceptance sets.
#include "oracle/ops/attention/counterfactual.h"

#include <algorithm>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
double Counterfactual::logit(const AttentionRow& row, std::int32_t key, const Hypothesis& hypothesis) const {
  const AttentionParams& p = problem_.params();
  const double factor = hypothesis.descale ? problem_.score_factor(row, key) : static_cast<double>(p.scale);
  const double y = hypothesis.gain * factor * score_[static_cast<std::size_t>(key)];
  const double cap = hypothesis.softcap ? static_cast<double>(p.softcap) : 0.0;
  return (cap != 0 ? cap * tanh64(y / cap) : y) +
         (hypothesis.alibi ? problem_.bias(row, key) : problem_.additive(row, key));
}

std::vector<double> Counterfactual::logits(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                           const Hypothesis& hypothesis) {
  load_head(problem_, row.batch, problem_.kv_head(row.head), head_);
  q_.resize(static_cast<std::size_t>(problem_.params().dim_qk));
  problem_.load_q(row, q_);
  head_scores(head_, q_, score_, magnitude_);
  std::vector<double> x(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) x[i] = logit(row, keys[i], hypothesis);
  return x;
}

RowOutput Counterfactual::attend(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                 const Hypothesis& hypothesis) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const AttentionParams& p = problem_.params();
  const std::vector<double> x = logits(row, keys, hypothesis);
  const auto dv = static_cast<std::size_t>(p.dim_v);
  const double sink = hypothesis.sink ? problem_.sink(row) : -kInfinity;
  double m = sink;
  for (const double logit : x) m = std::max(m, logit);
  RowOutput out{std::vector<double>(dv, 0.0), m};
  if (m == -kInfinity) return out;
  double l = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double w = exp64(x[i] - m);
    if (w == 0) continue;
    l += w;
    const double* v = head_.v.data() + static_cast<std::size_t>(keys[i]) * dv;
    const double factor = hypothesis.descale ? problem_.value_factor(row, keys[i]) : 1.0;
    for (std::size_t c = 0; c < dv; ++c) out.o[c] += w * factor * (hypothesis.see_v ? hypothesis.see_v(v[c]) : v[c]);
  }
  const double denominator = l + exp64(sink - m);
  for (double& o : out.o) o /= denominator;
  out.lse = m + log64(p.sink == Sink::kInLse ? denominator : l);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

}  // namespace assay
