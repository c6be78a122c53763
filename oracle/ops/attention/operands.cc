// Decodes a head once for all its rows.
#include "oracle/ops/attention/operands.h"

#include <algorithm>
#include <cmath>

#include "oracle/simd.h"

namespace assay {
namespace {

ASSAY_HOT void add_dim(double q, const double* k, std::size_t n, double* score, double* magnitude) {
  const double q_abs = std::abs(q);
  for (std::size_t j = 0; j < n; ++j) {
    score[j] += q * k[j];
    magnitude[j] += q_abs * std::abs(k[j]);
  }
}

}  // namespace

void load_head(const AttentionProblem& problem, std::int64_t batch, std::int64_t kv_head, HeadOperands& head) {
  if (head.batch == batch && head.kv_head == kv_head) return;
  const AttentionParams& p = problem.params();
  head.batch = batch;
  head.kv_head = kv_head;
  head.keys = problem.kv_len(batch);
  head.dim_qk = p.dim_qk;
  head.dim_v = p.dim_v;
  const auto n = static_cast<std::size_t>(head.keys), d = static_cast<std::size_t>(p.dim_qk),
             dv = static_cast<std::size_t>(p.dim_v);
  head.k_by_dim.resize(n * d);
  head.v.resize(n * dv);
  head.special_v.clear();
  head.k_max = 0;
  std::vector<double> k(d);
  for (std::size_t j = 0; j < n; ++j) {
    problem.load_k(batch, kv_head, static_cast<std::int64_t>(j), k);
    for (std::size_t c = 0; c < d; ++c) {
      head.k_by_dim[c * n + j] = k[c];
      if (std::isfinite(k[c])) head.k_max = std::max(head.k_max, std::abs(k[c]));
    }
    const std::span<double> v(head.v.data() + j * dv, dv);
    problem.load_v(batch, kv_head, static_cast<std::int64_t>(j), v);
    bool special = false;
    for (double& value : v) {
      special = special || !std::isfinite(value);
      if (!std::isfinite(value)) value = 0;
    }
    if (special) head.special_v.push_back(static_cast<std::int32_t>(j));
  }
}

void head_scores(const HeadOperands& head, std::span<const double> q, std::vector<double>& score,
                 std::vector<double>& magnitude) {
  const auto n = static_cast<std::size_t>(head.keys);
  score.assign(n, 0.0);
  magnitude.assign(n, 0.0);
  for (std::size_t c = 0; c < q.size(); ++c)
    add_dim(q[c], head.k_by_dim.data() + c * n, n, score.data(), magnitude.data());
}

}  // namespace assay
