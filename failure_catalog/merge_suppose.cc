// The merge of some of a row's parts in plain fp64.
#include "failure_catalog/merge_suppose.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "failure_catalog/suppose.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

RowOutput merged(const MergeProblem& problem, const MergeRow& row, const std::function<bool(std::int32_t)>& takes) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const MergeParams& p = problem.params();
  const auto dv = static_cast<std::size_t>(p.dim_v);
  RowOutput out{std::vector<double>(dv, 0.0), 0, {}};
  double top = -kInf, sum = 0;
  for (std::size_t s = 0; s < row.part.size(); ++s)
    if (takes(row.part[s])) top = std::max(top, row.lse[s] * problem.log_base());
  if (top == -kInf) {
    if (p.empty_output == EmptyOutput::kNan) out.o.assign(dv, std::numeric_limits<double>::quiet_NaN());
    out.lse = p.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf;
    return out;
  }
  for (std::size_t s = 0; s < row.part.size(); ++s) {
    if (!takes(row.part[s])) continue;
    const double weight = exp64(row.lse[s] * problem.log_base() - top);
    sum += weight;
    for (std::size_t c = 0; c < dv; ++c) out.o[c] += weight * row.o[s * dv + c];
  }
  for (double& o : out.o) o /= sum;
  out.lse = (top + log64(sum)) / problem.log_base();
  return out;
}

}  // namespace

Supposition suppose_parts(const Scene& scene, std::function<bool(std::int32_t part)> takes, std::string text,
                          double cost) {
  const auto problem = std::make_shared<MergeProblem>(scene.problem);
  return suppose(
      scene,
      [problem, takes = std::move(takes)](std::size_t row) -> std::optional<RowOutput> {
        const MergeRow parts = problem->row(static_cast<std::int64_t>(row));
        if (!parts.has_numbers || std::all_of(parts.part.begin(), parts.part.end(), takes)) return std::nullopt;
        return merged(*problem, parts, takes);
      },
      std::move(text), cost);
}

}  // namespace assay
