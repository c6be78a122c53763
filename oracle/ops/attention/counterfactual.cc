// Plain fp64 attention of one row; without a radius, since it is only compared with outputs that are already rejected.
#include "oracle/ops/attention/counterfactual.h"

#include <algorithm>
#include <limits>

#include "oracle/exp64.h"

namespace assay {

RowOutput attend(const AttentionProblem& problem, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 double scale, const std::function<double(double)>& see_v) {
  const AttentionParams& p = problem.params();
  const std::int64_t g = problem.kv_head(row.head);
  std::vector<double> q(static_cast<std::size_t>(p.dim_qk)), k(q.size()), v(static_cast<std::size_t>(p.dim_v));
  problem.load_q(row, q);
  std::vector<double> x(keys.size());
  double m = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    problem.load_k(row.batch, g, keys[i], k);
    double s = 0;
    for (std::size_t c = 0; c < q.size(); ++c) s += q[c] * k[c];
    x[i] = scale * s + problem.bias(row, keys[i]);
    m = std::max(m, x[i]);
  }
  RowOutput out{std::vector<double>(v.size(), 0.0), m};
  if (keys.empty()) return out;
  double l = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double w = exp64(x[i] - m);
    if (w == 0) continue;
    l += w;
    problem.load_v(row.batch, g, keys[i], v);
    for (std::size_t c = 0; c < v.size(); ++c) out.o[c] += w * (see_v ? see_v(v[c]) : v[c]);
  }
  for (double& o : out.o) o /= l;
  out.lse = m + log64(l);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

}  // namespace assay
