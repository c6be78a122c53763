// Merged rows in fp64 with a proven radius; rows that fp64 cannot decide go to the reference.
//
// u = 2^-53. D_s = ln B (lse_max - lse_s) carries two roundings and, in base two, that of ln 2: e^-D_s is off by a
// factor e^eta_s, eta_s = 3.1 u D_s + eps_exp, and by 2^-1074 absolutely when subnormal. With p_s = w_s / L, psi =
// e^eta - 1, Psi = sum p psi
//   |o^ - o| <= sum p_s psi_s |o_s - o| / (1 - Psi) + gamma_{n+4} (sum p_s |o_s| + |o|) + floor        (numerics.md (C))
//   |lse^ - lse| <= Psi / (1 - Psi) + gamma_n + eps_log ln L + 3u (|lse_max| + |lse|).
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/ops/merge/analysis.h"
#include "oracle/ops/merge/layouts.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kShare = 0x1p-10;  // of the bound: a larger radius is for the reference (numerics.md 2.14)
constexpr int kEscalationBits = 128;

double gamma64(double n) { return n * kU / (1 - n * kU); }

bool must_escalate(const MergeProblem& problem, const MergeRow& row, const MergeTruth& truth, const MergeBound& bound) {
  for (std::size_t c = 0; c < truth.o_radius.size(); ++c)
    if ((row.o_classes[c] & kNumber) && !(truth.o_radius[c] <= kShare * bound.o[c].tau)) return true;
  return problem.lse() != nullptr && !(truth.lse_radius <= kShare * bound.lse.tau);
}

void append(Bound& bound, const MergeProblem& problem, const MergeRow& row, const MergeRowResult& result) {
  const bool lost = !result.bound.out_of_range.empty();
  OutputBound& o = bound.outputs[0];
  for (std::size_t c = 0; c < result.bound.o.size(); ++c) {
    ClassSet also = 0;
    for (std::int32_t s : row.infinite[c])
      if (row.has_numbers && result.analysis.depth[static_cast<std::size_t>(s)] >= result.bound.lost_depth)
        also |= kNan;
    o.tau.push_back(lost ? kInf : result.bound.o[c].tau);
    o.also.push_back(lost ? kAnything : also);
  }
  if (problem.lse() != nullptr) {
    bound.outputs[1].tau.push_back(lost ? kInf : result.bound.lse.tau);
    bound.outputs[1].also.push_back(lost ? kAnything : ClassSet{0});
  }
  bound.out_of_range.push_back(result.bound.out_of_range);
}

std::vector<std::string> assumptions(const Arithmetic& a) {
  std::vector<std::string> all{
      "T0: no legal arithmetic of the declared enums gives a rejected value; intermediates are fp32",
      exponential_assumption(a.exponential), kLogAssumption};
  if (a.normalize != Normalize::kReciprocal && a.normalize != Normalize::kDivide)
    all.emplace_back(
        "parts may be merged one after the other, each merge leaving fp32 o and LSE; trees of merges are not covered");
  return all;
}

Evaluation evaluate_merge(const Problem& raw, const Arithmetic& arithmetic, Level) {
  const MergeProblem problem(raw);
  Evaluation evaluation{.truth = start_truth(problem), .bound = {}};
  evaluation.bound.outputs.resize(evaluation.truth.outputs.size());
  evaluation.bound.assumptions = assumptions(arithmetic);
  for (std::int64_t i = 0; i < problem.params().rows; ++i) {
    const MergeRow row = problem.row(i);
    MergeRowResult result = evaluate_merge_row(problem, row, arithmetic);
    if (row.has_numbers && result.bound.out_of_range.empty() && must_escalate(problem, row, result.truth, result.bound))
      result.truth = merge_reference_row(problem, row, kEscalationBits);
    append(evaluation.truth, problem, row, result.truth);
    append(evaluation.bound, problem, row, result);
  }
  return evaluation;
}

const RegisterOp kRegister({
    .name = "merge",
    .summary = "merge of partial outputs by their log-sum-exp: split-KV combine, cascade, context parallel",
    .params = kMergeParams,
    .canonical = canonical_merge,
    .inputs = merge_inputs,
    .outputs = merge_outputs,
    .input_format = merge_input_format,
    .cells = merge_cells,
    .evaluate = evaluate_merge,
    .reference = merge_reference,
    .known_wrong = merge_known_wrong,
    .digits = merge_digits,
    .bound_terms = merge_bound_terms,
    .planted_faults = merge_planted_faults,
    .plant = merge_plant,
    .fault_site = merge_fault_site,
});

}  // namespace

MergeAnalysis analyse_merge(const MergeProblem& problem, const MergeRow& row) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const std::size_t parts = row.part.size();
  const double log_base = problem.log_base(), top = *std::max_element(row.lse.begin(), row.lse.end());
  MergeAnalysis a;
  a.max_lse = top * log_base;
  for (double lse : row.lse) a.depth.push_back((top - lse) * log_base);
  for (double depth : a.depth) a.weight.push_back(-depth);
  exp64(a.weight.data(), a.weight.data(), parts);
  double excess = 0;
  for (std::size_t s = 0; s < parts; ++s) {
    a.sum += a.weight[s];
    const double eta = 3.1 * kU * a.depth[s] + kExp64RelativeError;  // D > 745 has no weight; below it eta is tiny
    excess += a.weight[s] * std::min(eta * (1 + eta), 1.0) + kExp64AbsoluteError;
  }
  const double psi = 1.01 * excess / a.sum, gamma = gamma64(static_cast<double>(parts) + 4);
  const double log_sum = log64(a.sum);
  a.lse = a.max_lse + log_sum;
  a.lse_radius =
      1.01 * (psi + gamma + kLog64RelativeError * log_sum + 3 * kU * (std::abs(a.max_lse) + std::abs(a.lse)));
  std::vector<double> abs(dv, 0.0), deviation(dv, 0.0), largest(dv, 0.0);
  a.o.assign(dv, 0.0);
  for (std::size_t s = 0; s < parts; ++s)
    for (std::size_t c = 0; c < dv; ++c) {
      const double o = row.o[s * dv + c];
      a.o[c] += a.weight[s] * o;
      abs[c] += a.weight[s] * std::abs(o);
      largest[c] = std::max(largest[c], std::abs(o));
    }
  for (double& o : a.o) o /= a.sum;
  for (std::size_t s = 0; s < parts; ++s) {
    const double eta = std::min(3.1 * kU * a.depth[s] + kExp64RelativeError, 1.0);
    const double moved = a.weight[s] * eta * (1 + eta) / a.sum + kExp64AbsoluteError;
    for (std::size_t c = 0; c < dv; ++c) deviation[c] += moved * std::abs(row.o[s * dv + c] - a.o[c]);
  }
  for (std::size_t c = 0; c < dv; ++c)
    a.o_radius.push_back(1.01 * (deviation[c] / (1 - psi) + gamma * (abs[c] / a.sum + std::abs(a.o[c])) +
                                 static_cast<double>(parts) * kExp64AbsoluteError * (1 + largest[c])));
  return a;
}

MergeRowResult evaluate_merge_row(const MergeProblem& problem, const MergeRow& row, const Arithmetic& arithmetic) {
  MergeRowResult result{.truth = start_row(problem, row), .bound = {}, .analysis = {}};
  result.bound.o.resize(result.truth.o_mid.size());
  if (!row.has_numbers) return result;
  const MergeAnalysis& a = result.analysis = analyse_merge(problem, row);
  result.bound = bound_merge(problem, row, a, arithmetic);
  MergeTruth& truth = result.truth;
  truth.o_mid = a.o;
  truth.o_radius = a.o_radius;
  truth.lse_mid = a.lse / problem.log_base();
  truth.lse_radius = a.lse_radius / problem.log_base() * (1 + 8 * kU) + 4 * kU * std::abs(truth.lse_mid);
  truth.facts.max_logit = a.max_lse;
  truth.facts.min_logit = a.max_lse - *std::max_element(a.depth.begin(), a.depth.end());
  truth.facts.lse = a.lse;
  double squares = 0;
  for (double w : a.weight) squares += w * w;
  truth.facts.effective_keys = a.sum * a.sum / squares;
  return result;
}

}  // namespace assay
