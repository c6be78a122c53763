// Gathers what `assay tolerance` prints from an evaluation, the bound's terms and the detection floors.
#include "reports/tolerance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "oracle/measure.h"
#include "reports/tolerance_rule.h"

namespace assay {
namespace {

/// The elements of one output that must be numbers, and functions of them.
class Numbers {
 public:
  Numbers(const OutputTruth& truth, const JudgedOutput& judged) : size_(truth.mid.size()) {
    for (std::size_t i = 0; i < size_; ++i)
      if (!std::isnan(judged.centre[i]) && (truth.classes[i] & kNumber)) at_.push_back(i);
  }
  std::size_t count() const { return at_.size(); }
  template <class Value>
  Spread spread(const Value& value) const {
    std::vector<double> all(size_, std::numeric_limits<double>::quiet_NaN());
    for (const std::size_t i : at_) all[i] = value(i);
    return spread_of(all);
  }

 private:
  std::size_t size_;
  std::vector<std::size_t> at_;
};

LevelReport level_report(std::string name, const OutputTruth& truth, const Numbers& numbers,
                         const std::vector<double>& tau) {
  LevelReport report{
      .name = std::move(name),
      .tau = numbers.spread([&](std::size_t i) { return tau[i]; }),
      .ulps = numbers.spread([&](std::size_t i) { return tau[i] / ulp(truth.layout.format, truth.mid[i]); })};
  report.unbounded = static_cast<std::int64_t>(numbers.count()) - report.tau.count;
  return report;
}

OutputReport output_report(const Evaluation& evaluation, const std::vector<BoundTerm>& terms, const JudgedLevel& t0,
                           std::size_t k) {
  const OutputTruth& truth = evaluation.truth.outputs[k];
  const Numbers numbers(truth, t0.outputs[k]);
  const std::vector<double>& tau = evaluation.bound.outputs[k].tau;
  OutputReport report;
  report.layout = truth.layout;
  report.element = truth.element;
  report.numbers = static_cast<std::int64_t>(numbers.count());
  report.magnitude = numbers.spread([&](std::size_t i) { return std::abs(truth.mid[i]); });
  report.radius = numbers.spread([&](std::size_t i) { return truth.radius[i]; });
  const Spread share = numbers.spread([&](std::size_t i) { return truth.radius[i] / tau[i]; });
  report.radius_share = share.count > 0 ? share.max : 0;
  report.levels.push_back(level_report(t0.name, truth, numbers, tau));
  for (const Tier& tier : evaluation.bound.tiers)
    if (!tier.outputs[k].tau.empty())
      report.levels.push_back(level_report(std::string(level_name(tier.level)), truth, numbers, tier.outputs[k].tau));
  for (const BoundTerm& term : terms) {
    if (term.outputs[k].empty()) continue;
    const auto size = [&](std::size_t i) { return term.outputs[k][i]; };
    report.terms.push_back({.name = term.name,
                            .size = numbers.spread(size),
                            .share = numbers.spread([&](std::size_t i) { return size(i) / tau[i]; }).median});
  }
  return report;
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  Spread s;
  std::vector<double> finite;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    finite.push_back(values[i]);
    if (s.at_min < 0 || values[i] < s.min) s.min = values[i], s.at_min = static_cast<std::int64_t>(i);
    if (s.at_max < 0 || values[i] > s.max) s.max = values[i], s.at_max = static_cast<std::int64_t>(i);
  }
  s.count = static_cast<std::int64_t>(finite.size());
  if (finite.empty()) return s;
  const auto middle = finite.begin() + static_cast<std::ptrdiff_t>(finite.size() / 2);
  std::nth_element(finite.begin(), middle, finite.end());
  s.median = *middle;
  return s;
}

std::vector<std::int64_t> index_of(const TensorLayout& layout, std::int64_t element) {
  std::vector<std::size_t> axes(layout.shape.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::stable_sort(axes.begin(), axes.end(),
                   [&](std::size_t a, std::size_t b) { return layout.strides[a] > layout.strides[b]; });
  std::vector<std::int64_t> index(axes.size(), 0);
  std::int64_t rest = element - layout.offset;
  for (const std::size_t axis : axes) {
    if (layout.shape[axis] <= 1 || layout.strides[axis] == 0) continue;
    index[axis] = rest / layout.strides[axis];
    rest %= layout.strides[axis];
  }
  return index;
}

ToleranceReport tolerance_report(const Op& op, const Problem& problem, const Arithmetic& arithmetic, Level level,
                                 const std::optional<Rule>& rule) {
  const Evaluation evaluation = op.evaluate(problem, arithmetic, level);
  ToleranceReport report;
  report.arithmetic = arithmetic;
  report.assumptions = evaluation.bound.assumptions;
  report.rows = static_cast<std::int64_t>(evaluation.truth.rows.size());
  for (const std::string& reason : evaluation.bound.out_of_range) {
    report.rows_out_of_range += !reason.empty();
    if (report.out_of_range.empty()) report.out_of_range = reason;
  }
  std::vector<JudgedLevel> levels{judged_level(evaluation, Level::kT0)};
  for (const Tier& tier : evaluation.bound.tiers) levels.push_back(judged_level(evaluation, tier.level));
  const std::vector<BoundTerm> terms = op.bound_terms(problem, arithmetic);
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k)
    report.outputs.push_back(output_report(evaluation, terms, levels.front(), k));
  if (rule) {
    report.rule = rule_report(op, problem, evaluation, levels, *rule);
    levels.push_back(rule_level(evaluation.truth, *rule));
  }
  for (const JudgedLevel& judged : levels) report.levels.push_back(judged.name);
  report.faults = detection_floors(op, problem, evaluation.truth, levels);
  return report;
}

}  // namespace assay
