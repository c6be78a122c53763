// Errors of weights by key and their majorants; the radius of a row.
#include "oracle/ops/attention/row_errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/panel_gemm.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-53;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargestPsi = 0x1p-9;  // beyond it computed weights do not stand for exact ones within 1.01
constexpr double kSmallScores = 0x1p15;  // below the largest number of every format that scores are stored in
constexpr double kTiny = 0x1p-1070;     // what roundings below the normal range may add
constexpr double kDeepestWeight = 560;  // e^-560 < kWeightFloor

double gamma64(double n) { return n * kU / (1 - n * kU); }

/// e^x - 1 from above, for x >= 0: x + x^2 covers it up to 1.
double expm1_upper(double x) { return x <= 1 ? (x + x * x) * (1 + 0x1p-50) : exp64(x) * (1 + 0x1p-50); }

ASSAY_HOT void add_deviation(double weight, double factor, const double* v, const double* o, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += weight * std::abs(factor * v[c] - o[c]);
}

/// sums[j] = sum_c |q_c panel_cj|
ASSAY_HOT void panel_magnitudes(const double* q, const float* panel, std::size_t d, double* sums) {
  double lanes[kNarrowPanel] = {};
  for (std::size_t c = 0; c < d; ++c)
    for (std::size_t j = 0; j < kNarrowPanel; ++j) lanes[j] += std::abs(q[c] * static_cast<double>(panel[c * kNarrowPanel + j]));
  for (std::size_t j = 0; j < kNarrowPanel; ++j) sums[j] = lanes[j];
}

/// At least |w^_j - w_j| over the sum of the weights, but for phi_j. `share`: w^_j over that sum.
double weight_shift(double eta, double depth, double share, double sum, int bits) {
  const double psi = weight_error(eta, bits);
  return psi <= kLargestPsi ? share * psi : exp64(std::min(eta - depth, 700.0)) / sum * 1.01;
}

}  // namespace

int weight_bits(Format input) {
  const int value_bits = info(input).fraction_bits + 1;
  return value_bits <= 11 ? 53 - value_bits : 53;
}

double weight_error(double eta, int bits) {
  const double rounding = bits < 53 ? std::bit_cast<double>(static_cast<std::uint64_t>(1023 - bits) << 52) : 0;
  return expm1_upper(eta + 1.01 * (kExp64RelativeError + rounding));
}

void log_weight_errors(const AttentionParams& params, const RowAnalysis& a, double q_spread, std::vector<double>& eta, double& top) {
  const std::size_t n = a.keys.size(), r = a.top;
  const double unit_of_sum = params.alibi != Alibi::kNone && params.data_mask == DataMask::kAdditive ? kU : 0.0;
  const double cap = params.softcap == 0 ? kInf : static_cast<double>(params.softcap);
  const bool differences_first = params.softcap == 0 && a.factor.size() == 1;
  const auto factor = [&](std::size_t j) { return std::abs(a.factor[a.factor.size() == 1 ? 0 : j]); };
  const auto bias = [&](std::size_t j) { return a.bias.empty() ? 0.0 : a.bias[j]; };
  const ScoreRounding rounding(a.operands->dim_qk);
  const auto score_error = [&](std::size_t j) {
    return factor(j) * rounding.error(q_spread, a.operands->k_spread[static_cast<std::size_t>(a.keys[j])]) * a.magnitude[j];
  };
  const auto logit_error = [&](std::size_t j) {
    const double y = std::abs(a.linear[j]), x = std::abs(a.max_logit) + a.depth[j];
    const double rounded = params.softcap == 0 ? 2 * y : 12 * std::min(y, cap);
    return score_error(j) + 1.01 * kU * rounded + (a.bias.empty() ? 0.0 : 1.01 * kU * x + unit_of_sum * std::abs(bias(j)));
  };
  top = logit_error(r);
  eta.resize(n);
  const double error_r = score_error(r);
  for (std::size_t j = 0; j < n; ++j) {
    if (differences_first) {
      const double moved = std::abs(a.factor[0] * (a.score[j] - a.score[r])), between = std::abs(bias(j) - bias(r));
      eta[j] = score_error(j) + error_r + 1.01 * kU * (3 * moved + between + a.depth[j]) +
               unit_of_sum * (std::abs(bias(j)) + std::abs(bias(r)));
    } else {
      eta[j] = logit_error(j) + top + 1.01 * kU * a.depth[j];
    }
  }
}

WeightErrors weight_errors(const RowAnalysis& a, const std::vector<double>& eta, double top, double normalise, int bits) {
  const std::size_t n = eta.size();
  WeightErrors errors{.common = 0, .excess = 0, .largest = 0, .top = top};
  double total = 0;
  for (std::size_t j = 0; j < n; ++j) {
    total += weight_shift(eta[j], a.depth[j], a.p[j] * normalise, a.sum, bits);
    if (a.depth[j] - eta[j] < kDeepestWeight) errors.largest = std::max(errors.largest, weight_error(eta[j], bits));
  }
  errors.common = std::min(errors.largest, 4 * total);
  for (std::size_t j = 0; j < n; ++j) {
    const double psi = weight_error(eta[j], bits), share = a.p[j] * normalise;
    if (psi > errors.common)
      errors.excess += psi <= kLargestPsi ? share * (psi - errors.common) : weight_shift(eta[j], a.depth[j], share, a.sum, bits);
  }
  return errors;
}

WeightErrors alike_weight_errors(double keys, double score_error, double top, double deepest, int bits) {
  // eta_j = 2 score_error + 3.1u D_j. Keys deeper than 32 have weights below e^-32, and with y = D_j - 32 each adds at most
  // e^(-32 - y) 3.2u y <= 3.2u e^-33 to the excess; the largest weight is 1.
  constexpr double kCut = 32, kLost = 0x1.50p-48;  // > e^-33
  const auto psi = [&](double depth) { return weight_error(2 * score_error + 3.1 * kU * depth, bits); };
  WeightErrors errors;
  errors.common = psi(std::min(deepest, kCut));
  errors.largest = psi(std::min(deepest, kDeepestWeight + 10));
  errors.excess = deepest <= kCut ? 0 : errors.largest <= kLargestPsi ? keys * kLost * 3.3 * kU : kInf;
  errors.top = top;
  return errors;
}

namespace {

/// What the sums over keys leave, beside the weights' own errors.
struct Sums {
  double values = 0;   ///< relative to sum p |w|
  double row_sum = 0;  ///< relative
  double floor = 0;    ///< relative to the largest |w|
};

Sums sum_errors(const AttentionParams& params, const RowAnalysis& a) {
  const auto n = static_cast<double>(a.keys.size());
  const double first = a.keys.front(), last = a.keys.back();
  const double tiles = (last - first) / static_cast<double>(kKeyTile) + 2;
  const int bits = weight_bits(params.input);
  Sums sums;
  sums.values = gamma64(std::min(static_cast<double>(kKeyTile), last - first + 1) + tiles + 2);
  if (a.value_factor.size() > 1) sums.values += 1.01 * (weight_error(0, bits) + kU);
  sums.row_sum = gamma64((last - first) / 16 + 8);
  sums.floor = (n + 1) * (a.sink - a.max_logit > kSinkAbove ? 0x1p-1000 : kWeightFloor / a.denominator);
  return sums;
}

/// p_s psi_s
double sink_shift(const WeightErrors& errors, const RowAnalysis& a) {
  if (a.sink_p == 0) return 0;
  const double eta = errors.top + 1.01 * kU * std::abs(a.sink - a.max_logit);
  return a.sink_p * weight_error(eta, 53);
}

void set_lse_radius(const WeightErrors& errors, const Sums& sums, double psi, RowAnalysis& a) {
  const double log_sum = std::abs(a.lse - a.max_logit);
  a.lse_radius = 1.01 * (errors.top + psi + sums.row_sum + kLog64RelativeError * log_sum + kU * log_sum +
                         2 * kU * (std::abs(a.lse) + std::abs(a.max_logit)) + static_cast<double>(a.keys.size()) * kWeightFloor);
  if (!(psi <= kLargestPsi) || !std::isfinite(a.lse_radius)) a.lse_radius = kInf;
}

}  // namespace

void set_radius(const AttentionParams& params, const WeightErrors& errors, RowAnalysis& a) {
  const Sums sums = sum_errors(params, a);
  const double sink = sink_shift(errors, a);
  const double psi = errors.common + errors.excess + sink;
  const std::size_t dv = a.o.size();
  a.psi64 = 1.02 * (errors.largest + psi + sums.row_sum + 4 * kU);
  a.o_radius.resize(dv);
  for (std::size_t c = 0; c < dv; ++c) {
    const double o = std::abs(a.o[c]), w_max = a.operands->v_max[c];
    const double weights = errors.common * (a.abs_p[c] + o) + (errors.excess > 0 ? errors.excess * (w_max + o) : 0.0) + sink * o;
    const double radius = 1.01 * (weights / (1 - psi) + sums.values * a.abs_p[c] + (sums.row_sum + 4 * kU) * o) + sums.floor * w_max +
                          kTiny;
    a.o_radius[c] = psi <= kLargestPsi && radius < kInf ? radius : kInf;
  }
  set_lse_radius(errors, sums, psi, a);
}

void sharpen_radius(const AttentionProblem& problem, RowAnalysis& a) {
  const AttentionParams& params = problem.params();
  const int bits = weight_bits(params.input);
  make_magnitudes_exact(problem, a);
  std::vector<double> q(static_cast<std::size_t>(params.dim_qk)), eta, deviation(a.o.size());
  problem.load_q(a.row, q);
  WeightErrors errors;
  log_weight_errors(params, a, vector_facts(params.input, q).spread, eta, errors.top);
  const double normalise = a.denominator / a.sum;
  double psi = 0;
  for (std::size_t j = 0; j < a.keys.size(); ++j) {
    const double shift = weight_shift(eta[j], a.depth[j], a.p[j] * normalise, a.sum, bits) / normalise;
    psi += shift * normalise;
    const double factor = a.value_factor.empty() ? 1.0 : a.value_factor[a.value_factor.size() == 1 ? 0 : j];
    add_deviation(shift, factor, a.operands->v.data() + static_cast<std::size_t>(a.keys[j]) * a.o.size(), a.o.data(), a.o.size(),
                  deviation.data());
  }
  const Sums sums = sum_errors(params, a);
  const double sink = sink_shift(errors, a);
  psi += sink;
  for (std::size_t c = 0; c < a.o.size(); ++c) {
    const double o = std::abs(a.o[c]), w_max = a.operands->v_max[c];
    const double radius = 1.01 * ((deviation[c] + sink * o) / (1 - psi) + sums.values * a.abs_p[c] + (sums.row_sum + 4 * kU) * o) +
                          sums.floor * w_max + kTiny;
    if (psi <= kLargestPsi && radius < a.o_radius[c]) a.o_radius[c] = radius;
  }
  const double old = a.lse_radius;
  set_lse_radius(errors, sums, psi, a);
  a.lse_radius = std::min(a.lse_radius, old);
}

bool magnitudes_matter(const AttentionParams& params, double factor, double hull) {
  const double d = static_cast<double>(params.dim_qk);
  const auto blocks = [&](int k) { return std::ceil(d / k); };
  const AccumulationError qk = accumulation_error(Accumulate::kUnknown, params.input, d, blocks);
  return qk.relative * std::abs(factor) * hull > info(params.input).unit_roundoff / 3 || hull > kSmallScores;
}

namespace {

/// Sum |q_c k_c| over the products that are finite.
double finite_magnitude(const AttentionProblem& problem, const RowAnalysis& a, std::int32_t key) {
  std::vector<double> q(static_cast<std::size_t>(a.operands->dim_qk)), k(q.size());
  problem.load_q(a.row, q);
  problem.load_k(a.operands->batch, a.operands->kv_head, key, k);
  double sum = 0;
  for (std::size_t c = 0; c < q.size(); ++c)
    if (const double product = std::abs(q[c] * k[c]); std::isfinite(product)) sum += product;
  return sum * (1 + gamma64(static_cast<double>(q.size()) + 2));
}

}  // namespace

void hulls_without_weight(const AttentionProblem& problem, const std::vector<std::int32_t>& keys,
                          const std::function<double(std::int32_t)>& magnitude, RowAnalysis& a) {
  a.hull_without_weight = a.factor_without_weight = a.logit_without_weight = 0;
  for (const std::int32_t key : keys) {
    const double hull = magnitude(key), factor = std::abs(problem.score_factor(a.row, key));
    const bool finite = std::isfinite(hull);
    a.hull_without_weight = std::max(a.hull_without_weight, finite ? hull : finite_magnitude(problem, a, key));
    if (!finite || !std::isfinite(factor)) continue;  // rule 8 of row_truth.h
    a.factor_without_weight = std::max(a.factor_without_weight, factor);
    a.logit_without_weight = std::max(a.logit_without_weight, factor * hull);
  }
}

void make_magnitudes_exact(const AttentionProblem& problem, RowAnalysis& a) {
  if (a.magnitude_exact || a.uniform) return;
  const HeadOperands& head = *a.operands;
  const auto d = static_cast<std::size_t>(head.dim_qk);
  std::vector<double> q(d);
  problem.load_q(a.row, q);
  double sums[kNarrowPanel] = {};
  std::int32_t panel = -1;
  constexpr auto kStep = static_cast<std::int32_t>(kNarrowPanel);
  const double up = 1 + gamma64(static_cast<double>(d) + 2);
  a.score_hull = a.hull_without_weight;
  for (std::size_t j = 0; j < a.keys.size(); ++j) {
    if (a.keys[j] / kStep != panel) {
      panel = a.keys[j] / kStep;
      panel_magnitudes(q.data(), head.k_panel(static_cast<std::size_t>(panel)), d, sums);
    }
    if (a.magnitude[j] > 0) a.magnitude[j] = sums[a.keys[j] % kStep] * up;
    a.score_hull = std::max(a.score_hull, a.magnitude[j]);
  }
  a.magnitude_exact = true;
}

}  // namespace assay
