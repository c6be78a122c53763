// Gathers a row's logits key by key.
#include "oracle/ops/attention/row_logits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/strip_loops.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double capped_logit(const AttentionParams& params, double y) {
  if (params.softcap == 0) return y;
  const double cap = static_cast<double>(params.softcap);
  return cap * tanh64(y / cap);
}

std::size_t largest(const std::vector<double>& x) {
  return static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

/// All x finite and nothing between score and logit but one factor.
void take_all(const HeadOperands& head, const std::vector<std::int32_t>& admissible, const std::vector<double>& score, double factor,
              double q_norm, RowAnalysis& a, std::vector<double>& logits) {
  const std::size_t n = admissible.size();
  a.keys = admissible;
  a.score = score;
  a.factor.assign(1, factor);
  a.bias.clear();
  a.magnitude.resize(n);
  for (std::size_t i = 0; i < n; ++i) a.magnitude[i] = q_norm * head.k_norm[static_cast<std::size_t>(admissible[i])];
  a.linear.resize(n);
  multiply(factor, score.data(), n, a.linear.data());
  logits = a.linear;
  a.top = largest(logits);
}

}  // namespace

LogitFacts gather_logits(const AttentionProblem& problem, const HeadOperands& head, const std::vector<std::int32_t>& admissible,
                         const std::vector<double>& score, double q_norm, RowAnalysis& a, std::vector<double>& logits) {
  const AttentionParams& p = problem.params();
  const std::size_t most = admissible.size();
  const bool same_factor = problem.same_factor_for_all_keys(), biased = problem.has_bias(), capped = p.softcap != 0;
  double factor = most > 0 ? problem.score_factor(a.row, admissible[0]) : 0;
  a.magnitude_exact = false;
  if (same_factor && !biased && !capped && std::isfinite(factor) && most > 0 &&
      std::all_of(score.begin(), score.end(), [](double s) { return std::isfinite(s); })) {
    take_all(head, admissible, score, factor, q_norm, a, logits);
    return {};
  }
  LogitFacts facts;
  a.keys.resize(most);
  a.score.resize(most);
  a.magnitude.resize(most);
  a.linear.resize(most);
  a.bias.resize(biased ? most : 0);
  a.factor.resize(same_factor ? 1 : most);
  logits.resize(most);
  std::size_t n = 0;
  for (std::size_t i = 0; i < most; ++i) {
    const std::int32_t key = admissible[i];
    if (!same_factor) factor = problem.score_factor(a.row, key);
    facts.infinite_factor = facts.infinite_factor || !std::isfinite(factor);
    const double bias = biased ? problem.bias(a.row, key) : 0.0;
    const double y = factor * score[i], x = capped_logit(p, y) + bias;
    if (!(x < kInf)) (std::isnan(x) ? facts.nan : facts.plus_inf) = true;
    if (x == -kInf) facts.no_weight.push_back(key);
    const bool saturated = capped && std::isinf(y);
    facts.capped_infinity = facts.capped_infinity || saturated;
    if (!std::isfinite(x)) continue;
    a.keys[n] = key;
    a.score[n] = saturated ? 0 : score[i];
    a.magnitude[n] = saturated ? 0 : q_norm * head.k_norm[static_cast<std::size_t>(key)];
    a.linear[n] = saturated ? 0 : y;
    if (biased) a.bias[n] = bias;
    if (!same_factor) a.factor[n] = saturated ? 0 : factor;
    logits[n] = x;
    ++n;
  }
  if (same_factor) a.factor[0] = std::isfinite(factor) ? factor : 0;
  else a.factor.resize(n);
  if (biased) a.bias.resize(n);
  for (std::vector<double>* array : {&a.score, &a.magnitude, &a.linear, &logits}) array->resize(n);
  a.keys.resize(n);
  a.top = n > 0 ? largest(logits) : 0;
  return facts;
}

void gather_depths(const AttentionParams& params, const RowAnalysis& a, const std::vector<double>& logits, std::vector<double>& t) {
  const std::size_t n = a.keys.size(), r = a.top;
  t.resize(n);
  if (params.softcap != 0 || a.factor.size() != 1) {
    for (std::size_t j = 0; j < n; ++j) t[j] = logits[j] - logits[r];
  } else if (a.bias.empty()) {
    for (std::size_t j = 0; j < n; ++j) t[j] = a.factor[0] * (a.score[j] - a.score[r]);
  } else {
    for (std::size_t j = 0; j < n; ++j) t[j] = a.factor[0] * (a.score[j] - a.score[r]) + (a.bias[j] - a.bias[r]);
  }
}

}  // namespace assay
