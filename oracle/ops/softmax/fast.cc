// Softmax rows in fp64 with a proven radius; rows that fp64 cannot decide go to the reference.
//
// u = 2^-53. scale x_j and mask_j are exact doubles, so with r the key of the largest computed logit
//   d_j = (scale x_j - scale x_r) + (mask_j - mask_r) is off by at most u (|first| + |second| + |d_j|),
//   weights e^d_j carry the relative error e^eta_j - 1, eta_j = 1.01 u (...) + eps_exp, and 2^-1074 absolutely when subnormal,
//   |L^ - L| <= sum_j w_j (e^eta_j - 1) + gamma_n L + 2.02 u |t_r| L        (the last: r need not be the exact maximum),
//   |y^_j - y_j| <= [w_j (e^eta_j - 1) + y_j |L^ - L|] / (L^ - |L^ - L|) + u y_j.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/ops/softmax/analysis.h"
#include "oracle/ops/softmax/layouts.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr int kEscalationBits = 128;

double gamma64(double n) { return n * kU / (1 - n * kU); }

/// Index of the largest computed logit among the first `count` finite keys.
std::size_t top_of(const SoftmaxRow& row, const std::vector<std::int32_t>& finite, std::size_t count) {
  std::size_t top = 0;
  double best = -kInf;
  for (std::size_t k = 0; k < count; ++k) {
    const auto i = static_cast<std::size_t>(finite[k]);
    const double t = row.linear[i] + row.bias[i];
    if (t > best) best = t, top = k;
  }
  return top;
}

void set_y(const SoftmaxRow& row, const std::vector<std::int32_t>& finite, const SoftmaxPrefix& prefix,
           SoftmaxTruth& truth) {
  const double known = prefix.sum - prefix.excess;
  for (std::size_t k = 0; k < finite.size(); ++k) {
    const auto j = static_cast<std::size_t>(row.key[static_cast<std::size_t>(finite[k])]);
    const double y = prefix.weight[k] / prefix.sum;
    const double excess = excess_weight(prefix.weight[k], prefix.depth[k], prefix.eta[k]) + kExp64AbsoluteError;
    const double radius = 1.01 * ((excess + y * prefix.excess) / known + kU * y) + kExp64AbsoluteError;
    truth.y_mid[j] = y;
    truth.y_radius[j] = known > prefix.sum / 2 && radius < kInf ? radius : kInf;
  }
}

void set_lse(const SoftmaxParams& p, const SoftmaxPrefix& prefix, SoftmaxTruth& truth) {
  const double log_sum = log64(prefix.sum), lse = prefix.max_logit + log_sum;
  const double relative = prefix.sum_radius / (prefix.sum - prefix.sum_radius);
  const double radius =
      1.01 * (prefix.max_radius + relative + kLog64RelativeError * std::abs(log_sum) + kU * std::abs(lse));
  const bool two = p.lse == LseBase::kTwo;
  truth.lse_mid = two ? lse / kLn2 : lse;
  truth.lse_radius = two ? radius / kLn2 * (1 + 8 * kU) + 4 * kU * std::abs(truth.lse_mid) : radius;
  if (!(prefix.sum_radius < prefix.sum / 2) || !(truth.lse_radius < kInf)) truth.lse_radius = kInf;
  truth.facts.max_logit = prefix.max_logit;
  truth.facts.min_logit = prefix.max_logit - *std::max_element(prefix.depth.begin(), prefix.depth.end());
  truth.facts.lse = lse;
  double squares = 0;
  for (double w : prefix.weight) squares += w * w;
  truth.facts.effective_keys = prefix.sum * prefix.sum / squares;
}

/// Ball arithmetic decides the row when fp64's radius is not small beside the bound (numerics.md 2.14).
bool must_escalate(const std::vector<double>& radius, const std::vector<ClassSet>& classes,
                   const std::vector<SoftmaxTau>& tau) {
  constexpr double kShare = 0x1p-10;
  for (std::size_t i = 0; i < radius.size(); ++i)
    if ((classes[i] & kNumber) && radius[i] > 0 && !(radius[i] < kInf && radius[i] <= kShare * tau[i].tau)) return true;
  return false;
}

void append(Bound& bound, const SoftmaxRowResult& row, const SoftmaxProblem& problem) {
  const bool lost = !row.out_of_range.empty();
  std::size_t next = 0;
  const auto add = [&](const TensorLayout* layout, const std::vector<SoftmaxTau>& taus) {
    if (layout == nullptr) return;
    OutputBound& out = bound.outputs[next++];
    for (const SoftmaxTau& tau : taus) {
      out.tau.push_back(lost ? kInf : tau.tau);
      out.also.push_back(lost ? kAnything : ClassSet{0});
    }
  };
  add(problem.y(), row.y);
  add(problem.lse(), row.lse);
  add(problem.m(), row.m);
  add(problem.l(), row.l);
  bound.out_of_range.push_back(row.out_of_range);
}

std::vector<std::string> assumptions(const Arithmetic& a) {
  std::vector<std::string> all{
      "T0: no legal arithmetic of the declared enums gives a rejected value; intermediates are fp32, the order of the "
      "row sum is free",
      exponential_assumption(a.exponential), kLogAssumption};
  if (a == Arithmetic{})
    all.emplace_back(
        "nothing is declared: the bound is the union over the family: scale folded or on x; maximum known before, or "
        "running over any tiles; subnormals kept or flushed");
  return all;
}

Evaluation evaluate_softmax(const Problem& raw, const Arithmetic& arithmetic, Level) {
  const SoftmaxProblem problem(raw);
  Evaluation evaluation{.truth = start_truth(problem), .bound = {}};
  evaluation.bound.outputs.resize(evaluation.truth.outputs.size());
  evaluation.bound.assumptions = assumptions(arithmetic);
  for (std::int64_t i = 0; i < problem.params().rows; ++i) {
    const SoftmaxRow row = problem.row(i);
    SoftmaxRowResult result = evaluate_softmax_row(problem, row, arithmetic);
    const SoftmaxTruth& t = result.truth;
    const bool asked = problem.lse() != nullptr;
    if (result.out_of_range.empty() &&
        (must_escalate(t.y_radius, t.y_classes, result.y) || must_escalate(t.m_radius, t.m_classes, result.m) ||
         must_escalate(t.l_radius, t.l_classes, result.l) ||
         (asked && must_escalate({t.lse_radius}, {t.lse_classes}, result.lse))))
      result.truth = softmax_reference_row(problem, row, kEscalationBits);
    append(evaluation.truth, problem, i, result.truth);
    append(evaluation.bound, result, problem);
  }
  return evaluation;
}

const RegisterOp kRegister({
    .name = "softmax",
    .summary = "softmax(scale x + mask) over the last axis, with log-sum-exp and the states of the online recurrence",
    .params = kSoftmaxParams,
    .canonical = canonical_softmax,
    .inputs = softmax_inputs,
    .outputs = softmax_outputs,
    .input_format = softmax_input_format,
    .cells = softmax_cells,
    .evaluate = evaluate_softmax,
    .reference = softmax_reference,
    .known_wrong = softmax_known_wrong,
    .digits = softmax_digits,
    .bound_terms = softmax_bound_terms,
    .planted_faults = softmax_planted_faults,
    .plant = softmax_plant,
    .fault_site = softmax_fault_site,
});

}  // namespace

double expm1_upper(double x) { return x <= 1 ? (x + x * x) * (1 + 0x1p-50) : exp64(x) * (1 + 0x1p-50); }

double excess_weight(double weight, double depth, double eps) {
  return eps <= 0.5 ? weight * expm1_upper(eps) : exp64(eps - depth) * (1 + 0x1p-40);
}

void analyse_prefix(const SoftmaxRow& row, const std::vector<std::int32_t>& finite, std::size_t count,
                    SoftmaxPrefix& prefix) {
  const std::size_t top = top_of(row, finite, count);
  const std::size_t kept = prefix.depth.empty() || top != prefix.top ? 0 : prefix.depth.size();
  const auto r = static_cast<std::size_t>(finite[top]);
  prefix.top = top;
  prefix.depth.resize(count);
  prefix.eta.resize(count);
  prefix.weight.resize(count);
  for (std::size_t k = kept; k < count; ++k) {
    const auto i = static_cast<std::size_t>(finite[k]);
    const double moved = row.linear[i] - row.linear[r], biased = row.bias[i] - row.bias[r], d = moved + biased;
    prefix.depth[k] = -d;
    prefix.eta[k] = 1.01 * kU * (std::abs(moved) + std::abs(biased) + std::abs(d)) + kExp64RelativeError;
    prefix.weight[k] = d;
  }
  exp64(prefix.weight.data() + kept, prefix.weight.data() + kept, count - kept);
  prefix.max_logit = row.linear[r] + row.bias[r];
  // Without a bias the logit is an exact double.
  const bool exact = std::all_of(finite.begin(), finite.begin() + static_cast<std::ptrdiff_t>(count),
                                 [&](std::int32_t i) { return row.bias[static_cast<std::size_t>(i)] == 0; });
  prefix.max_radius = exact ? 0 : 2.02 * kU * std::abs(prefix.max_logit);
  double sum = 0, excess = 0;
  for (std::size_t k = 0; k < count; ++k) {
    sum += prefix.weight[k];
    excess += excess_weight(prefix.weight[k], prefix.depth[k], prefix.eta[k]) + kExp64AbsoluteError;
  }
  prefix.sum = sum;
  prefix.excess = 1.01 * (excess + gamma64(static_cast<double>(count) + 2) * sum);
  prefix.sum_radius = 1.01 * (prefix.excess + expm1_upper(prefix.max_radius) * sum);
  if (!(prefix.sum_radius < kInf)) prefix.sum_radius = kInf;
}

SoftmaxRowResult evaluate_softmax_row(const SoftmaxProblem& problem, const SoftmaxRow& row,
                                      const Arithmetic& arithmetic) {
  const SoftmaxParams& p = problem.params();
  Classified c = classify(p, row);
  SoftmaxRowResult result{.truth = std::move(c.truth), .y = {}, .lse = {}, .m = {}, .l = {}, .out_of_range = {}};
  SoftmaxTruth& truth = result.truth;
  result.y.resize(truth.y_mid.size());
  result.lse.resize(1);
  result.m.resize(truth.m_mid.size());
  result.l.resize(truth.l_mid.size());
  const SoftmaxBudget budget(p, row, c.finite, arithmetic);
  if (!c.has_numbers)
    for (std::size_t j = 0; j < result.y.size(); ++j)
      if (truth.y_classes[j] & kNumber) result.y[j] = budget.mean();
  result.out_of_range = budget.out_of_range();
  if (c.finite.empty()) return result;
  SoftmaxPrefix prefix;
  for (std::size_t s = 0; s < c.step_finite.size(); ++s) {
    if (c.step_finite[s] == 0) continue;
    analyse_prefix(row, c.finite, c.step_finite[s], prefix);
    truth.m_mid[s] = prefix.max_logit;
    truth.m_radius[s] = prefix.max_radius;
    truth.l_mid[s] = prefix.sum;
    truth.l_radius[s] = prefix.sum_radius;
    result.m[s] = budget.m(prefix);
    result.l[s] = budget.l(prefix);
    if (result.out_of_range.empty()) result.out_of_range = budget.out_of_range(prefix);
  }
  analyse_prefix(row, c.finite, c.finite.size(), prefix);
  if (result.out_of_range.empty()) result.out_of_range = budget.out_of_range(prefix);
  if (!c.has_numbers) return result;
  set_y(row, c.finite, prefix, truth);
  set_lse(p, prefix, truth);
  const std::vector<SoftmaxTau> y = budget.y(prefix);
  for (std::size_t k = 0; k < y.size(); ++k)
    result.y[static_cast<std::size_t>(row.key[static_cast<std::size_t>(c.finite[k])])] = y[k];
  result.lse[0] = budget.lse(prefix);
  return result;
}

}  // namespace assay
