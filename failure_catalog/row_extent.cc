// Extents of rows of attention, softmax and merge.
#include "failure_catalog/row_extent.h"

#include <cmath>
#include <limits>

#include "oracle/ops/merge/problem.h"
#include "oracle/ops/softmax/problem.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

RowExtent attention_extent(AttentionView& view, std::size_t row, bool with_logits) {
  const AttentionRow& at = view.row(row);
  RowExtent extent{view.problem.kv_len(at.batch), {}};
  for (const std::int32_t key : view.keys(row))
    if (view.problem.additive(at, key) > -kInf) extent.key.push_back(key);
  if (with_logits) extent.logit = view.counterfactual.logits(at, extent.key);
  return extent;
}

RowExtent softmax_extent(const Problem& raw, std::int64_t row) {
  const SoftmaxProblem problem(raw);
  const SoftmaxRow all = problem.row(row);
  RowExtent extent{problem.params().n, {}};
  for (std::size_t j = 0; j < all.key.size(); ++j) {
    const double logit = all.linear[j] + all.bias[j];
    if (logit == -kInf) continue;
    extent.key.push_back(all.key[j]);
    extent.logit.push_back(logit);
  }
  return extent;
}

RowExtent merge_extent(const Problem& raw, std::int64_t row) {
  const MergeProblem problem(raw);
  const MergeRow parts = problem.row(row);
  RowExtent extent{problem.params().parts, parts.part};
  for (const double lse : parts.lse) extent.logit.push_back(lse * problem.log_base());
  return extent;
}

}  // namespace

RowExtent row_extent(const Scene& scene, std::size_t row, bool with_logits) {
  if (AttentionView* view = scene.attention()) return attention_extent(*view, row, with_logits);
  const std::int64_t at = scene.evaluation.truth.rows[row].query;
  return scene.c.op == "softmax" ? softmax_extent(scene.problem, at) : merge_extent(scene.problem, at);
}

}  // namespace assay
