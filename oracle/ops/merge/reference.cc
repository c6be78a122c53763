// Merge in ball arithmetic: p_s = B^(lse_s - m), o = sum p_s o_s / sum p_s, lse = m + log_B sum p_s.
#include <algorithm>

#include "oracle/ops/merge/layouts.h"
#include "oracle/ops/merge/problem.h"
#include "oracle/real.h"

namespace assay {
namespace {

constexpr int kLargestPrecision = 1024;
constexpr int kResolved = -60;  // log2 of the largest relative radius that needs no more precision

struct MergeBalls {
  std::vector<Ball> o;  ///< [dv]
  Ball lse;             ///< in the base
  Ball sum, squares, natural;
};

MergeBalls balls_at(const MergeProblem& problem, const MergeRow& row, int precision) {
  const Precision scope(precision);
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const Ball log_base = problem.params().base == LseBase::kTwo ? log(Ball(2.0)) : Ball(1.0);
  const Ball m(*std::max_element(row.lse.begin(), row.lse.end()));
  MergeBalls out;
  std::vector<Ball> weights, values;
  for (double lse : row.lse) {
    weights.push_back(exp((Ball(lse) - m) * log_base));
    out.sum += weights.back();
    out.squares += weights.back() * weights.back();
  }
  for (double o : row.o) values.emplace_back(o);
  for (std::size_t c = 0; c < dv; ++c)
    out.o.push_back(dot(Ball(), weights, std::span<const Ball>(values).subspan(c), dv) / out.sum);
  out.lse = m + log(out.sum) / log_base;
  out.natural = m * log_base + log(out.sum);
  return out;
}

/// A midpoint of 0 stands for o = 0 exactly or for a sum that cancels beyond 1000 bits.
bool is_resolved(const Ball& ball) {
  return ball.relative_radius_within(kResolved) || (ball.midpoint_is_zero() && ball.to_double().radius <= 0x1p-1000);
}

MergeBalls resolved_balls(const MergeProblem& problem, const MergeRow& row, int precision) {
  for (;; precision = std::min(2 * precision, kLargestPrecision)) {
    MergeBalls out = balls_at(problem, row, precision);
    bool resolved = is_resolved(out.lse);
    for (std::size_t c = 0; c < out.o.size(); ++c)
      resolved = resolved && (!(row.o_classes[c] & kNumber) || is_resolved(out.o[c]));
    if (resolved || precision >= kLargestPrecision) return out;
  }
}

}  // namespace

MergeTruth merge_reference_row(const MergeProblem& problem, const MergeRow& row, int precision) {
  MergeTruth truth = start_row(problem, row);
  truth.facts.escalated = true;
  if (!row.has_numbers) return truth;
  const MergeBalls balls = resolved_balls(problem, row, precision);
  for (std::size_t c = 0; c < balls.o.size(); ++c) {
    const Enclosure o = balls.o[c].to_double();
    truth.o_mid[c] = o.mid;
    truth.o_radius[c] = o.radius;
  }
  const Enclosure lse = balls.lse.to_double();
  truth.lse_mid = lse.mid;
  truth.lse_radius = lse.radius;
  const auto [least, largest] = std::minmax_element(row.lse.begin(), row.lse.end());
  truth.facts.max_logit = *largest * problem.log_base();
  truth.facts.min_logit = *least * problem.log_base();
  truth.facts.lse = balls.natural.to_double().mid;
  truth.facts.effective_keys = (balls.sum * balls.sum / balls.squares).to_double().mid;
  return truth;
}

Truth merge_reference(const Problem& problem, int precision) {
  const MergeProblem merge(problem);
  Truth truth = start_truth(merge);
  for (std::int64_t i = 0; i < merge.params().rows; ++i) {
    const MergeRow row = merge.row(i);
    append(truth, merge, row, merge_reference_row(merge, row, precision));
  }
  return truth;
}

std::string merge_digits(const Problem& problem, std::size_t output, std::int64_t index, int count) {
  constexpr int kBits = 256;
  const MergeProblem merge(problem);
  const std::int64_t per_row = output == 0 ? merge.params().dim_v : 1;
  const MergeRow row = merge.row(index / per_row);
  const auto channel = static_cast<std::size_t>(index % per_row);
  if (!row.has_numbers || (output == 0 && !(row.o_classes[channel] & kNumber))) return {};
  const MergeBalls balls = resolved_balls(merge, row, kBits);
  return output == 0 ? balls.o[channel].digits(count) : balls.lse.digits(count);
}

}  // namespace assay
