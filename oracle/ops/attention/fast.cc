// Attention in fp64 with a computed radius: the same truth as reference.cc, fast enough to fuzz with.
//
// Reductions run in ascending order and are vectorised over outputs (keys for scores, channels for o), products of inputs are
// exact in fp64 (24 + 24 significant bits), and nothing is contracted: the bits do not depend on the register width.
//
// Error of each step, u = 2^-53, gamma_n = n u / (1 - n u):
//   score       |ds_j| <= gamma_d A_j,  A_j = sum_c |q_c k_jc|                  (d - 1 additions of exact products)
//   log-weight  t_j = scale (s_j - s_r) + (b_j - b_r), r the key of the largest computed logit; taking differences first keeps
//               the error relative to the difference, so rows with huge logits stay sharp where weight remains:
//               eta_j = |scale| (ds_j + ds_r) + 1.01 u (3 |scale (s_j - s_r)| + |b_j - b_r| + |t_j|) + eps_exp
//   weights     e^t_j carries the relative error e^eta_j - 1 (and 2^-1074 absolutely when subnormal)
//   output      |o^ - o| <= sum_j p_j psi_j |v_j - o| / (1 - sum_j p_j psi_j) + gamma_{n+4} (sum_j p_j |v_j| + |o|) + floor,
//               psi_j = e^eta_j - 1                                             (numerics.md (C), first form)
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/analysis.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

double gamma64(double n) { return n * kU / (1 - n * kU); }

ASSAY_HOT void add_scaled(double weight, const double* v, std::size_t n, double* sum, double* abs_sum) {
  for (std::size_t c = 0; c < n; ++c) {
    sum[c] += weight * v[c];
    abs_sum[c] += weight * std::abs(v[c]);
  }
}

ASSAY_HOT void add_deviation(double weight, const double* v, const double* o, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += weight * std::abs(v[c] - o[c]);
}

/// e^x - 1 from above, for x >= 0: x + x^2 covers it up to 1.
double expm1_upper(double x) { return x <= 1 ? (x + x * x) * (1 + 0x1p-50) : exp64(x) * (1 + 0x1p-50); }

class RowEvaluator {
 public:
  explicit RowEvaluator(const AttentionProblem& problem) : problem_(problem) {}

  /// Truth of one row. `analysis()` is valid for bound_row afterwards if the return value's facts say the row has keys.
  RowTruth evaluate(const AttentionRow& row);
  const RowAnalysis& analysis() const { return a_; }
  bool has_numbers() const { return has_numbers_; }

 private:
  void scores(const AttentionRow& row);
  void weights();
  void output();
  RowTruth empty(RowTruth truth);
  void channel_classes(RowTruth& truth, const std::vector<std::int32_t>& no_weight) const;

  const AttentionProblem& problem_;
  HeadOperands head_;
  RowAnalysis a_;
  bool has_numbers_ = false;
  std::vector<std::int32_t> admissible_;
  std::vector<double> q_, score_, magnitude_, t_, abs_sum_, deviation_;
};

void RowEvaluator::scores(const AttentionRow& row) {
  q_.resize(static_cast<std::size_t>(head_.dim_qk));
  problem_.load_q(row, q_);
  double q_max = 0;
  for (double q : q_)
    if (std::isfinite(q)) q_max = std::max(q_max, std::abs(q));
  a_.operand_max = q_max + head_.k_max;
  head_scores(head_, q_, score_, magnitude_);
}

void RowEvaluator::weights() {
  const std::size_t n = a_.keys.size();
  const double up = 1 + gamma64(static_cast<double>(head_.dim_qk) + 2);
  std::size_t r = 0;
  double best = -kInf;
  for (std::size_t j = 0; j < n; ++j) {
    a_.magnitude[j] *= up;
    const double x = a_.scale * a_.score[j] + a_.bias[j];
    if (x > best) best = x, r = j;
  }
  const double ds_unit = gamma64(static_cast<double>(head_.dim_qk));
  const double scale = std::abs(a_.scale), ds_r = ds_unit * a_.magnitude[r];
  a_.eta.resize(n);
  a_.depth.resize(n);
  t_.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    const double moved = a_.scale * (a_.score[j] - a_.score[r]);
    t_[j] = moved + (a_.bias[j] - a_.bias[r]);
    a_.eta[j] = scale * (ds_unit * a_.magnitude[j] + ds_r) +
                1.01 * kU * (3 * std::abs(moved) + std::abs(a_.bias[j] - a_.bias[r]) + std::abs(t_[j])) +
                kExp64RelativeError;
    a_.depth[j] = std::max(0.0, -t_[j]);
  }
  a_.max_logit = best;
  a_.p.resize(n);
  exp64(t_.data(), a_.p.data(), n);
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += a_.p[j];
  a_.sum = sum;
  double weighted_eta = 0;
  for (std::size_t j = 0; j < n; ++j) {
    a_.p[j] /= sum;
    weighted_eta += a_.p[j] * expm1_upper(a_.eta[j]);
  }
  const double log_sum = log64(sum);
  a_.lse = best + log_sum;
  a_.lse_radius = 1.01 * (scale * ds_r + 3 * kU * (scale * a_.magnitude[r] + std::abs(a_.bias[r])) + weighted_eta +
                          gamma64(static_cast<double>(n) + 4) + kLog64RelativeError * std::abs(log_sum) +
                          2 * kU * (std::abs(a_.lse) + std::abs(best)) +
                          static_cast<double>(n) * kExp64AbsoluteError);
  if (!std::isfinite(a_.lse_radius)) a_.lse_radius = kInf;
}

void RowEvaluator::output() {
  const auto dv = static_cast<std::size_t>(head_.dim_v);
  const std::size_t n = a_.keys.size();
  a_.o.assign(dv, 0.0);
  abs_sum_.assign(dv, 0.0);
  deviation_.assign(dv, 0.0);
  const auto v = [&](std::size_t j) { return head_.v.data() + static_cast<std::size_t>(a_.keys[j]) * dv; };
  double v_max = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (a_.p[j] == 0) continue;
    add_scaled(a_.p[j], v(j), dv, a_.o.data(), abs_sum_.data());
  }
  double psi_sum = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const double psi = expm1_upper(a_.eta[j]);
    const double weight = a_.p[j] * psi + kExp64AbsoluteError;
    psi_sum += weight;
    add_deviation(weight, v(j), a_.o.data(), dv, deviation_.data());
  }
  for (std::size_t j = 0; j < n && v_max < kInf; ++j)
    for (std::size_t c = 0; c < dv; ++c) v_max = std::max(v_max, std::abs(v(j)[c]));
  a_.o_radius.resize(dv);
  const double gamma = gamma64(static_cast<double>(n) + 4);
  for (std::size_t c = 0; c < dv; ++c) {
    const double radius = 1.01 * (deviation_[c] / (1 - psi_sum) + gamma * (abs_sum_[c] + std::abs(a_.o[c])) +
                                  static_cast<double>(n) * kExp64AbsoluteError * v_max);
    a_.o_radius[c] = psi_sum < 0.5 ? radius : kInf;
    if (!std::isfinite(a_.o[c])) a_.o[c] = 0, a_.o_radius[c] = kInf;
  }
}

/// Rule 1 and the second half of rule 3.
RowTruth RowEvaluator::empty(RowTruth truth) {
  const auto dv = static_cast<std::size_t>(head_.dim_v);
  const AttentionParams& p = problem_.params();
  truth.lse_classes = p.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf;
  truth.o_classes.assign(dv, p.empty_output == EmptyOutput::kNan ? kNan : kZero);
  truth.o_mid.assign(dv, 0.0);
  truth.o_radius.assign(dv, 0.0);
  if (p.empty_output != EmptyOutput::kMean || head_.keys == 0) return truth;
  const auto n = static_cast<std::size_t>(head_.keys);
  a_.uniform = true;
  a_.score_hull = 0;
  a_.keys.resize(n);
  for (std::size_t j = 0; j < n; ++j) a_.keys[j] = static_cast<std::int32_t>(j);
  a_.score.assign(n, 0.0);
  a_.magnitude.assign(n, 0.0);
  a_.bias.assign(n, 0.0);
  weights();
  output();
  has_numbers_ = true;
  truth.o_mid = a_.o;
  truth.o_radius = a_.o_radius;
  channel_classes(truth, {});
  return truth;
}

/// Rule 4: one class set per channel. `no_weight`: keys with x = -inf.
void RowEvaluator::channel_classes(RowTruth& truth, const std::vector<std::int32_t>& no_weight) const {
  const auto dv = static_cast<std::size_t>(head_.dim_v);
  truth.o_classes.assign(dv, kNumber);
  std::vector<bool> zero(dv, true);
  for (std::int32_t key : a_.keys)
    for (std::size_t c = 0; c < dv; ++c)
      zero[c] = zero[c] && head_.v[static_cast<std::size_t>(key) * dv + c] == 0;
  std::vector<bool> nan(dv), plus(dv), minus(dv), stray(dv);
  std::vector<double> v(dv);
  for (std::int32_t key : head_.special_v) {
    problem_.load_v(head_.batch, head_.kv_head, key, v);
    const bool weighted = std::binary_search(a_.keys.begin(), a_.keys.end(), key);
    const bool data = std::binary_search(no_weight.begin(), no_weight.end(), key);
    const bool may = data || problem_.params().masked_nonfinite == MaskedNonfinite::kPropagates;
    for (std::size_t c = 0; c < dv; ++c) {
      if (std::isfinite(v[c])) continue;
      if (!weighted) { stray[c] = stray[c] || may; continue; }
      zero[c] = false;
      nan[c] = nan[c] || std::isnan(v[c]);
      plus[c] = plus[c] || v[c] > 0;
      minus[c] = minus[c] || v[c] < 0;
    }
  }
  for (std::size_t c = 0; c < dv; ++c) {
    ClassSet& set = truth.o_classes[c];
    if (nan[c] || (plus[c] && minus[c])) set = kNan;
    else if (plus[c] || minus[c]) set = plus[c] ? kPlusInf : kMinusInf;
    else if (zero[c]) set = kZero;
    if (stray[c]) set |= kNan;
    if ((set & kNumber) == 0) truth.o_mid[c] = truth.o_radius[c] = 0;
  }
}

RowTruth RowEvaluator::evaluate(const AttentionRow& row) {
  load_head(problem_, row.batch, problem_.kv_head(row.head), head_);
  const AttentionParams& p = problem_.params();
  a_.row = row;
  a_.operands = &head_;
  a_.scale = static_cast<double>(p.scale);
  a_.uniform = false;
  has_numbers_ = false;
  const auto dv = static_cast<std::size_t>(head_.dim_v);
  RowTruth truth;
  truth.facts.batch = static_cast<std::int32_t>(row.batch);
  truth.facts.head = static_cast<std::int32_t>(row.head);
  truth.facts.query = static_cast<std::int32_t>(row.query);
  problem_.admissible_keys(row, admissible_);
  truth.facts.keys = static_cast<std::int32_t>(admissible_.size());
  if (admissible_.empty()) {
    truth.facts.max_logit = truth.facts.min_logit = truth.facts.lse = -kInf;
    return empty(std::move(truth));
  }
  truth.facts.first_key = admissible_.front();
  truth.facts.last_key = admissible_.back();
  scores(row);
  a_.keys.clear();
  a_.score.clear();
  a_.magnitude.clear();
  a_.bias.clear();
  std::vector<std::int32_t> no_weight;
  bool nan = false, plus = false;
  a_.score_hull = 0;
  double lowest = kInf;
  for (std::int32_t key : admissible_) {
    const auto j = static_cast<std::size_t>(key);
    const double bias = problem_.bias(row, key);
    const double x = a_.scale * score_[j] + bias;
    nan = nan || std::isnan(x);
    plus = plus || x == kInf;
    if (x == -kInf) no_weight.push_back(key);
    if (std::isfinite(score_[j])) a_.score_hull = std::max(a_.score_hull, magnitude_[j]);
    if (!std::isfinite(x)) continue;
    lowest = std::min(lowest, x);
    a_.keys.push_back(key);
    a_.score.push_back(score_[j]);
    a_.magnitude.push_back(magnitude_[j]);
    a_.bias.push_back(bias);
  }
  if (nan || plus) {
    truth.o_mid.assign(dv, 0.0);
    truth.o_radius.assign(dv, 0.0);
    truth.o_classes.assign(dv, kNan);
    truth.lse_classes = nan ? kNan : static_cast<ClassSet>(kNan | kPlusInf);
    truth.facts.max_logit = truth.facts.lse = std::numeric_limits<double>::quiet_NaN();
    truth.facts.min_logit = a_.keys.empty() ? -kInf : lowest;
    return truth;
  }
  if (a_.keys.empty()) {
    truth.facts.max_logit = truth.facts.min_logit = truth.facts.lse = -kInf;
    truth = empty(std::move(truth));
    for (ClassSet& set : truth.o_classes) set |= kNan;
    truth.lse_classes |= kNan | kMinusInf;
    return truth;
  }
  weights();
  output();
  has_numbers_ = true;
  truth.o_mid = a_.o;
  truth.o_radius = a_.o_radius;
  channel_classes(truth, no_weight);
  truth.lse_mid = p.lse == LseBase::kTwo ? a_.lse / kLn2 : a_.lse;
  truth.lse_radius = p.lse == LseBase::kTwo ? a_.lse_radius / kLn2 * (1 + 8 * kU) + 4 * kU * std::abs(truth.lse_mid)
                                            : a_.lse_radius;
  truth.facts.max_logit = a_.max_logit;
  truth.facts.min_logit = lowest;
  truth.facts.lse = a_.lse;
  double squares = 0;
  for (double weight : a_.p) squares += weight * weight;
  truth.facts.effective_keys = 1 / squares;
  return truth;
}

/// Ball arithmetic decides the row when fp64's radius is not small beside the bound (numerics.md 2.14).
bool must_escalate(const RowTruth& truth, const RowBound& bound, bool has_lse) {
  constexpr double kShare = 0x1p-10;
  for (std::size_t c = 0; c < truth.o_mid.size(); ++c)
    if ((truth.o_classes[c] & kNumber) && !(truth.o_radius[c] <= kShare * bound.o_tau[c])) return true;
  return has_lse && (truth.lse_classes & kNumber) && !(truth.lse_radius <= kShare * bound.lse_tau);
}

/// Rule for V = +-inf (numerics.md 2.14): NaN too where the key's P may have become 0 in its format or by rescaling.
void allow_lost_infinity(const AttentionProblem& problem, const RowAnalysis& a, double depth, std::vector<ClassSet>& also) {
  std::vector<double> v(also.size());
  for (std::int32_t key : a.operands->special_v) {
    const auto at = std::lower_bound(a.keys.begin(), a.keys.end(), key);
    if (at == a.keys.end() || *at != key || a.depth[static_cast<std::size_t>(at - a.keys.begin())] < depth) continue;
    problem.load_v(a.operands->batch, a.operands->kv_head, key, v);
    for (std::size_t c = 0; c < v.size(); ++c)
      if (!std::isfinite(v[c])) also[c] |= kNan;
  }
}

void append(Bound& bound, const RowBound& row, const std::vector<ClassSet>& also, bool has_lse) {
  const bool lost = !row.out_of_range.empty();
  OutputBound& o = bound.outputs[0];
  for (std::size_t c = 0; c < row.o_tau.size(); ++c) {
    o.tau.push_back(lost ? kInf : row.o_tau[c]);
    o.also.push_back(lost ? kAnything : also[c]);
  }
  if (has_lse) {
    bound.outputs[1].tau.push_back(lost ? kInf : row.lse_tau);
    bound.outputs[1].also.push_back(lost ? kAnything : ClassSet{0});
  }
  bound.out_of_range.push_back(row.out_of_range);
}

Evaluation evaluate_attention(const Problem& raw, const Arithmetic& arithmetic) {
  constexpr int kEscalationBits = 128;
  const AttentionProblem problem(raw);
  const bool has_lse = problem.lse_layout() != nullptr;
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  Evaluation evaluation{.truth = start_truth(problem), .bound = {}};
  evaluation.bound.outputs.resize(evaluation.truth.outputs.size());
  evaluation.bound.assumptions = bound_assumptions(arithmetic);
  RowEvaluator evaluator(problem);
  for (const AttentionRow& row : problem.rows()) {
    RowTruth truth = evaluator.evaluate(row);
    std::vector<ClassSet> also(dv, 0);
    RowBound bound;
    bound.o_tau.assign(dv, 0.0);
    if (evaluator.has_numbers()) {
      bound = bound_row(evaluator.analysis(), problem.params(), arithmetic);
      allow_lost_infinity(problem, evaluator.analysis(), bound.infinite_v_depth, also);
      if (bound.out_of_range.empty() && must_escalate(truth, bound, has_lse)) {
        truth = reference_row(problem, row, kEscalationBits);
        truth.facts.escalated = true;
      }
    }
    append(evaluation.truth, problem, row, truth);
    append(evaluation.bound, bound, also, has_lse);
  }
  return evaluation;
}

const RegisterOp kRegister({
    .name = "attention",
    .summary = "softmax(scale q k^T + mask) v with log-sum-exp, forward",
    .params = kAttentionParams,
    .canonical = canonical_attention,
    .inputs = attention_inputs,
    .outputs = attention_outputs,
    .evaluate = evaluate_attention,
    .reference = attention_reference,
    .known_wrong = attention_known_wrong,
    .digits = attention_digits,
});

}  // namespace
}  // namespace assay
