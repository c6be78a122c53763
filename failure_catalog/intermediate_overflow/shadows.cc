// Raw scores, folded queries, accumulators of P V, scaled logits and merged sums of sampled rows.
#include "failure_catalog/intermediate_overflow/shadows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "failure_catalog/row_extent.h"
#include "oracle/exp64.h"
#include "oracle/ops/merge/problem.h"
#include "oracle/ops/softmax/problem.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void add_attention(const Scene& scene, std::vector<ShadowKind>& all) {
  AttentionView& view = *scene.attention();
  const AttentionParams& p = view.problem.params();
  ShadowKind raw{std::string(kRawScore), "q", true, {}},
      folded{"q times scale and factors", std::string(kSoftmaxScale), false, {}},
      sums{std::string(kAccumulator), "v", false, {}};
  std::vector<double> q(static_cast<std::size_t>(p.dim_qk)), k(q.size()), v(static_cast<std::size_t>(p.dim_v));
  for (const std::size_t r : scene.trial().rows()) {
    const AttentionRow& row = view.row(r);
    const RowExtent extent = row_extent(scene, r, true);
    if (extent.key.empty()) continue;
    const std::int64_t kv_head = view.problem.kv_head(row.head);
    view.problem.load_q(row, q);
    double largest = -kInf, query = 0;
    for (const std::int32_t key : extent.key) {
      view.problem.load_k(row.batch, kv_head, key, k);
      const double factor = view.problem.score_factor(row, key);
      double score = 0;
      for (std::size_t c = 0; c < q.size(); ++c) score += q[c] * k[c], query = std::max(query, std::abs(q[c] * factor));
      largest = std::max(largest, factor < 0 ? -score : score);
    }
    // Overflow upwards makes the maximum infinite, downwards only that of all scores together does.
    raw.values.push_back({r, -1, std::abs(largest), std::abs(largest)});
    folded.values.push_back({r, -1, query, query});
    const double m = *std::max_element(extent.logit.begin(), extent.logit.end());
    std::vector<double> sum(v.size(), 0.0), magnitude(v.size(), 0.0);
    for (std::size_t j = 0; j < extent.key.size(); ++j) {
      const double w = exp64(extent.logit[j] - m);
      if (w == 0) continue;
      view.problem.load_v(row.batch, kv_head, extent.key[j], v);
      for (std::size_t c = 0; c < v.size(); ++c) sum[c] += w * v[c], magnitude[c] += w * std::abs(v[c]);
    }
    for (std::size_t c = 0; c < v.size(); ++c)
      sums.values.push_back({r, static_cast<std::int64_t>(c), std::abs(sum[c]), magnitude[c]});
  }
  all.insert(all.end(), {raw, sums, folded});
}

void add_softmax(const Scene& scene, std::vector<ShadowKind>& all) {
  ShadowKind scaled{"scale x", "x", false, {}};
  const SoftmaxProblem problem(scene.problem);
  for (const std::size_t r : scene.trial().rows()) {
    const SoftmaxRow row = problem.row(scene.evaluation.truth.rows[r].query);
    if (row.linear.empty()) continue;
    const double largest = *std::max_element(row.linear.begin(), row.linear.end());
    scaled.values.push_back({r, -1, std::abs(largest), std::abs(largest)});
  }
  all.push_back(scaled);
}

void add_merge(const Scene& scene, std::vector<ShadowKind>& all) {
  ShadowKind sums{"sum of weighted parts before its normalisation", "o_parts", false, {}};
  const MergeProblem problem(scene.problem);
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  for (const std::size_t r : scene.trial().rows()) {
    const MergeRow row = problem.row(scene.evaluation.truth.rows[r].query);
    if (!row.has_numbers) continue;
    const double m = *std::max_element(row.lse.begin(), row.lse.end());
    for (std::size_t c = 0; c < dv; ++c) {
      double sum = 0, magnitude = 0;
      for (std::size_t s = 0; s < row.part.size(); ++s) {
        const double o = exp64((row.lse[s] - m) * problem.log_base()) * row.o[s * dv + c];
        sum += o, magnitude += std::abs(o);
      }
      sums.values.push_back({r, static_cast<std::int64_t>(c), std::abs(sum), magnitude});
    }
  }
  all.push_back(sums);
}

}  // namespace

std::vector<ShadowKind> shadows(const Scene& scene) {
  std::vector<ShadowKind> all;
  if (scene.c.op == "attention") add_attention(scene, all);
  if (scene.c.op == "softmax") add_softmax(scene, all);
  if (scene.c.op == "merge") add_merge(scene, all);
  return all;
}

}  // namespace assay
