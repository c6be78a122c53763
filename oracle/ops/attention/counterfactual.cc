// Plain fp64 attention of one row; without a radius, since it is only compared with outputs or acceptance sets.
#include "oracle/ops/attention/counterfactual.h"

#include <algorithm>
#include <limits>

#include "oracle/exp64.h"

namespace assay {

RowOutput Counterfactual::attend(const AttentionRow& row, const std::vector<std::int32_t>& keys, double scale,
                                 const std::function<double(double)>& see_v) {
  const AttentionParams& p = problem_.params();
  load_head(problem_, row.batch, problem_.kv_head(row.head), head_);
  q_.resize(static_cast<std::size_t>(p.dim_qk));
  problem_.load_q(row, q_);
  head_scores(head_, q_, score_, magnitude_);
  const auto dv = static_cast<std::size_t>(p.dim_v);
  std::vector<double> x(keys.size());
  double m = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    x[i] = scale * score_[static_cast<std::size_t>(keys[i])] + problem_.bias(row, keys[i]);
    m = std::max(m, x[i]);
  }
  RowOutput out{std::vector<double>(dv, 0.0), m};
  if (keys.empty()) return out;
  double l = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double w = exp64(x[i] - m);
    if (w == 0) continue;
    l += w;
    const double* v = head_.v.data() + static_cast<std::size_t>(keys[i]) * dv;
    for (std::size_t c = 0; c < dv; ++c) out.o[c] += w * (see_v ? see_v(v[c]) : v[c]);
  }
  for (double& o : out.o) o /= l;
  out.lse = m + log64(l);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

}  // namespace assay
