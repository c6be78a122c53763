// The bound T0 of softmax for one declared arithmetic (numerics.md 2.2, 2.3 and 2.6, corrected by 2.14).
//
// Natural-log units; u = 2^-24; M the exact maximum, D_j = M - t_j, p_j = e^-D_j / L. Every undeclared field takes the
// worst member of its enum. What a kernel knows of a logit is off by
//   e_j = [scale on x] u |scale x_j| + [mask] u |t_j| + flushed inputs.
//
// y: the numerator is one exponential against the final maximum, off by a factor e^num_j, the denominator a sum of
// terms that are off by e^den_j after all rescalings, relative to the same subtracted maximum, whose error is a common
// factor and cancels:
//   num_j = e_j + 3u D_j + eps_ex2                  c^ = fl(scale log2 e) against c: 2u D_j; rounding of the exponent: u D_j
//   den_j = num_j + [running maximum] (R_j eps_ex2 + 2u D_j + [folded] u (max(|t_j|, |M|) + |M|))
// the last because fl(M_t c^) telescopes over the tiles and M_t lies between t_j and M; R_j rescalings after j's tile.
// With psi = e^eps - 1 and Psi = sum p_j psi(den_j) < 1
//   |y^_j - y_j| <= p_j [(1 + psi(num_j)) (1 + u_n) / ((1 - Psi) (1 - s_l)) - 1] + floor.
//
// m: the largest of what the kernel knows of the logits, so off by at most the largest e_j, less D_j for the keys
// below; a maximum kept in other units is converted: 4u |M|. The last rounding of a logit on its way is that of the
// output itself.
// l: relative to m. The common factor does not cancel here: terms are off by den_j + dm, dm the error of m and, folded,
// of fl(M c^). Only the term of a key that is the maximum for every legal kernel is exp(0), but for that fl(M c^).
// lse: as (L): Psi with [folded] u |M| per key, s_l, the logarithm, [folded] 3u |M| for the product of the maximum, u
// |lse|, 2u ln L.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/ops/softmax/analysis.h"
#include "oracle/ops/softmax/layouts.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep0;
constexpr double kSlack = 1 + 0x1p-8;  // products of two first-order terms, and fp64 rounding of the bound itself

/// The parts of a tau, scaled to sum to it.
SoftmaxTau split(double tau, double score, double exp, double row_sum, double normalise, double log, double floor) {
  SoftmaxTau out{.tau = tau >= 0 ? tau : kInf, .terms = {score, exp, row_sum, normalise, log, floor}};
  double sum = 0;
  for (double term : out.terms) sum += term;
  for (double& term : out.terms) term = sum > 0 && out.tau < kInf ? term * (out.tau / sum) : out.tau;
  return out;
}

std::string above(std::string_view what, double value, double limit) {
  return fmt::format("{}: {:.6g} > {:.6g}", what, value, limit);
}

}  // namespace

/// Weights of one prefix and their errors.
struct SoftmaxBudget::Sum {
  std::vector<double> score, den;       ///< den_j + common, and its part that comes from the logits
  double rescalings = 0;                ///< R
  double psi = 0;                       ///< sum p_j psi(den_j)
  double score_part = 0, exp_part = 0;  ///< of psi, to first order
  double error = 0;                     ///< s_l
};

SoftmaxBudget::SoftmaxBudget(const SoftmaxParams& params, const SoftmaxRow& row,
                             const std::vector<std::int32_t>& finite, const Arithmetic& arithmetic)
    : params_(params),
      row_(row),
      finite_(finite),
      arith_(arithmetic),
      bias_(params.data_mask == DataMask::kAdditive),
      ex2_(exponential_error(arithmetic.exponential)) {
  normalize_ = arithmetic.normalize == Normalize::kReciprocal ? 3 * kU32
               : arithmetic.normalize == Normalize::kDivide   ? 2 * kU32
                                                              : 6 * kU32;
  const double flushed =
      arithmetic.subnormals == Subnormals::kKept ? 0.0 : std::abs(static_cast<double>(params.scale)) * kMinNormal32;
  for (std::size_t k = 0; k < finite.size(); ++k) {
    const double y = std::abs(linear(k)), t = std::abs(linear(k) + row.bias[static_cast<std::size_t>(finite[k])]);
    logit_error_.push_back((on_score() || bias_ ? kU32 * y : 0.0) + (bias_ ? kU32 * t : 0.0) + std::min(flushed, y) +
                           kMinNormal32);
  }
}

bool SoftmaxBudget::folds() const { return arith_.scale_form != ScaleForm::kOnScore; }
bool SoftmaxBudget::on_score() const { return arith_.scale_form != ScaleForm::kFolded; }

bool SoftmaxBudget::running(const SoftmaxPrefix& prefix) const {
  const std::size_t count = prefix.depth.size();
  const bool single_tile = arith_.tile_n > 0 && key(0) / arith_.tile_n == key(count - 1) / arith_.tile_n;
  return arith_.max_policy != MaxPolicy::kGlobal && count > 1 && !single_tile;
}

/// How often the running maximum may rise after each key's tile; ties need no rescaling (exp2(0) = 1). Without a mask
/// what a kernel knows of a logit is a monotone function of x, so its records are among the exact ones.
std::vector<double> SoftmaxBudget::rescalings(const SoftmaxPrefix& prefix) const {
  const std::size_t count = prefix.depth.size();
  std::vector<double> most(count, 0.0);
  if (!running(prefix)) return most;
  const bool known = arith_.tile_n > 0 && arith_.tile_order != TileOrder::kUnknown;
  const std::int32_t tile = known ? arith_.tile_n : 1;
  const auto walk = [&](bool forward) {
    const auto at = [&](std::size_t step) { return forward ? step : count - 1 - step; };
    double low = -kInf, records = 0;   // low: the maximum so far is certainly at least this
    std::vector<double> until(count);  // records up to and with the key's tile
    for (std::size_t i = 0; i < count;) {
      const std::int32_t id = key(at(i)) / tile;
      double high = -kInf, tile_low = -kInf;
      const std::size_t first = i;
      for (; i < count && key(at(i)) / tile == id; ++i) {
        const std::size_t k = at(i);
        const double error = bias_ ? logit_error_[k] + prefix.eta[k] : 0, value = bias_ ? -prefix.depth[k] : linear(k);
        high = std::max(high, value + error);
        tile_low = std::max(tile_low, value - error);
      }
      records += high > low;
      low = std::max(low, tile_low);
      for (std::size_t step = first; step < i; ++step) until[at(step)] = records;
    }
    for (std::size_t k = 0; k < count; ++k) most[k] = std::max(most[k], records - until[k]);
  };
  if (!known || arith_.tile_order == TileOrder::kForward) walk(true);
  if (!known || arith_.tile_order == TileOrder::kBackward) walk(false);
  return most;
}

/// Longest chain of additions of the row sum. In the quad's layout key j of a tile belongs to lane j % 8 / 2.
double SoftmaxBudget::chain(std::size_t count) const {
  if (arith_.row_sum_tree != RowSumTree::kQuad) return static_cast<double>(count);
  std::array<double, 4> lanes{};
  for (std::size_t k = 0; k < count; ++k) {
    const std::int32_t local = arith_.tile_n > 0 ? key(k) % arith_.tile_n : key(k);
    ++lanes[static_cast<std::size_t>(local % 8 / 2)];
  }
  return *std::max_element(lanes.begin(), lanes.end()) + 2;
}

/// The largest magnitude of a maximum that weights may be relative to: the row's, or one on the way to it.
double SoftmaxBudget::largest_max(const SoftmaxPrefix& prefix) const {
  double largest = std::abs(prefix.max_logit);
  if (!running(prefix)) return largest;
  const bool known = arith_.tile_n > 0 && arith_.tile_order != TileOrder::kUnknown;
  const std::int32_t tile = known ? arith_.tile_n : 1;
  const std::size_t count = prefix.depth.size();
  const auto walk = [&](bool forward) {
    const auto at = [&](std::size_t step) { return forward ? step : count - 1 - step; };
    double top = -kInf;
    for (std::size_t i = 0; i < count;) {
      const std::int32_t id = key(at(i)) / tile;
      for (; i < count && key(at(i)) / tile == id; ++i) top = std::max(top, prefix.max_logit - prefix.depth[at(i)]);
      largest = std::max(largest, std::abs(top));
    }
  };
  if (!known || arith_.tile_order == TileOrder::kForward) walk(true);
  if (!known || arith_.tile_order == TileOrder::kBackward) walk(false);
  return largest;
}

/// Residual exponent (log2) that the exponential of a maximum may carry: b = fl(M c^) is off by up to u |M c^|.
double SoftmaxBudget::shift(const SoftmaxPrefix& prefix) const {
  return folds() ? 1.01 * kU32 * largest_max(prefix) * kLog2E : 0;
}

/// |m^ - M| for the maximum that a kernel subtracts.
double SoftmaxBudget::max_error(const SoftmaxPrefix& prefix) const {
  double error = logit_error_[prefix.top];
  for (std::size_t k = 0; k < prefix.depth.size(); ++k)
    error = std::max(error, logit_error_[k] + prefix.eta[k] - prefix.depth[k]);
  return error;
}

SoftmaxBudget::Sum SoftmaxBudget::sum_of(const SoftmaxPrefix& prefix, double common) const {
  const std::size_t count = prefix.depth.size();
  const bool run = running(prefix);
  const double top = std::abs(prefix.max_logit);
  Sum sum;
  const std::vector<double> after = rescalings(prefix);
  sum.rescalings = *std::max_element(after.begin(), after.end());
  for (std::size_t k = 0; k < count; ++k) {
    const double depth = std::abs(prefix.depth[k]);
    double score = logit_error_[k] + 3 * kU32 * depth + 2 * prefix.eta[k] + common;
    if (run) score += 2 * kU32 * depth + (folds() ? kU32 * (std::max(std::abs(top - depth), top) + top) : 0.0);
    score *= kSlack;
    const double exp = (1 + after[k]) * ex2_;
    sum.score.push_back(score);
    sum.den.push_back(score + exp);
    sum.psi += excess_weight(prefix.weight[k], prefix.depth[k], sum.den[k]);
    sum.score_part += prefix.weight[k] * score;
    sum.exp_part += prefix.weight[k] * exp;
  }
  sum.psi /= prefix.sum;
  sum.score_part /= prefix.sum;
  sum.exp_part /= prefix.sum;
  const auto n = static_cast<double>(count);
  sum.error = gamma32(chain(count) + sum.rescalings + 2) + n * kMinNormal32 / prefix.sum;
  return sum;
}

std::string SoftmaxBudget::out_of_range() const {
  // What rounds to a finite fp32 number: a mask of -max leaves room for any ordinary score.
  constexpr double kLimit = kMax32 + 0x1p102;
  double hull = 0;
  for (std::size_t i = 0; i < row_.linear.size(); ++i) {
    if (!std::isfinite(row_.linear[i])) continue;
    const double bias = std::isfinite(row_.bias[i]) ? std::abs(row_.bias[i]) : 0.0;
    hull = std::max(hull, std::abs(row_.linear[i]) * (1 + 2 * kU32) + bias);
  }
  if (!(hull <= kLimit)) return above("scale x", hull, kMax32);
  if (!folds()) return {};
  // c^ = fl32(scale log2 e) must be a normal number to keep its relative error.
  const double c = std::abs(static_cast<double>(params_.scale)) * kLog2E;
  if (c > kMax32) return above("scale log2 e", c, kMax32);
  if (c > 0 && c < kMinNormal32) return above("1 / (scale log2 e)", 1 / c, 1 / kMinNormal32);
  if (!(hull * kLog2E * kSlack <= kMax32)) return above("x scale log2 e", hull * kLog2E, kMax32);
  return {};
}

std::string SoftmaxBudget::out_of_range(const SoftmaxPrefix& prefix) const {
  const double residue = shift(prefix);
  if (!(residue <= 126)) return above("P, residual exponent of the maximum", residue, 126);
  const double l = static_cast<double>(prefix.depth.size()) * exp2_64(residue);
  if (!(l <= 0x1p126)) return above("l", l, 0x1p126);
  if (const double error = gamma32(2 * static_cast<double>(prefix.depth.size()) + 2); !(error < 0.5))
    return above("row sum, relative error", error, 0.5);
  return {};
}

std::vector<SoftmaxTau> SoftmaxBudget::y(const SoftmaxPrefix& prefix) const {
  const Sum sum = sum_of(prefix, 0);
  const double kept = 1 - sum.error;
  // Weights below fp32's normal range may be flushed by the exponential or by a rescaling.
  const double floor = 2 * kMinNormal32 * exp2_64(shift(prefix)) / prefix.sum +
                       (arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32) + 4 * kMinSubnormal32;
  // Whatever the weights, y^_j is at most its numerator over its own term of the sum. Both see the same logit, at most
  // 100 below the maximum (below that, y^_j is nothing), so they differ by 6u 100, the exponentials and what the
  // running maximum adds.
  const double own =
      1e-4 + (2 + sum.rescalings) * ex2_ + (running(prefix) && folds() ? 2.1 * kU32 * std::abs(prefix.max_logit) : 0.0);
  const double hull = exp64(own) * (1 + normalize_) / kept;
  std::vector<SoftmaxTau> out;
  for (std::size_t k = 0; k < prefix.depth.size(); ++k) {
    const double depth = std::abs(prefix.depth[k]), p = prefix.weight[k] / prefix.sum;
    const double score = (logit_error_[k] + 3 * kU32 * depth + 2 * prefix.eta[k]) * kSlack;
    const double numerator = p + excess_weight(prefix.weight[k], prefix.depth[k], score + ex2_) / prefix.sum;
    double tau = numerator * (1 + normalize_) / ((1 - sum.psi) * kept) - p;
    if (!(sum.psi < 0.5))
      tau = hull;
    else
      tau = std::min(tau, hull);
    out.push_back(split(tau * kSlack + floor, p * (score + sum.score_part), p * (ex2_ + sum.exp_part), p * sum.error,
                        p * normalize_, 0, floor));
  }
  return out;
}

SoftmaxTau SoftmaxBudget::mean() const {
  const auto n = static_cast<double>(params_.n);
  const double error = gamma32(n + 2);
  return split(error < 1 ? ((1 + normalize_) / (1 - error) - 1) / n * kSlack + 4 * kMinSubnormal32 : kInf, 0, 0,
               error / n, normalize_ / n, 0, 4 * kMinSubnormal32);
}

SoftmaxTau SoftmaxBudget::lse(const SoftmaxPrefix& prefix) const {
  const double top = std::abs(prefix.max_logit), ln_l = std::max(0.0, log64(prefix.sum));
  const Sum sum = sum_of(prefix, folds() ? 1.01 * kU32 * top : 0.0);
  const double lse = std::abs(prefix.max_logit + ln_l) + kLn2;
  // ln sum p_j e^eps_j: as ln(1 + sum p_j (e^eps_j - 1)) while that is small, else the largest eps_j - D_j is taken
  // out.
  double worst = -kInf;
  for (std::size_t k = 0; k < sum.den.size(); ++k) worst = std::max(worst, sum.den[k] - prefix.depth[k]);
  const double weights = worst < 0.5 ? sum.psi : worst + log64(static_cast<double>(sum.den.size()));
  const double log = kLg2 * std::max(kLn2, ln_l + sum.error) + 2 * kU32 * ln_l + kU32 * lse;
  const double product = folds() ? 3 * kU32 * top : 0;
  double tau = (weights + sum.error / (1 - sum.error) + log + product) * kSlack + 4 * kMinSubnormal32;
  double convert = 0;
  if (params_.lse == LseBase::kTwo) {
    convert = 4 * kU32 * lse;
    tau = (tau + convert) / kLn2;
  }
  return split(tau, sum.score_part + product, sum.exp_part, sum.error, 0, log + convert, 4 * kMinSubnormal32);
}

SoftmaxTau SoftmaxBudget::m(const SoftmaxPrefix& prefix) const {
  const double flush = (arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32) + 2 * kMinSubnormal32;
  double error = 0;
  if (folds()) {
    error = max_error(prefix) + 4 * kU32 * std::abs(prefix.max_logit);
  } else if (bias_) {  // fl(fl(scale x) + mask): the outer rounding is the output's
    for (std::size_t k = 0; k < prefix.depth.size(); ++k)
      error = std::max(error, kU32 * std::abs(linear(k)) + prefix.eta[k] - std::max(0.0, prefix.depth[k]));
  }
  return split(error * kSlack + flush, error, 0, 0, 0, 0, flush);
}

/// True if no legal kernel takes another key for the maximum, or finds another one equal.
bool SoftmaxBudget::top_is_certain(const SoftmaxPrefix& prefix) const {
  const double low = -logit_error_[prefix.top] * kSlack;
  for (std::size_t k = 0; k < prefix.depth.size(); ++k)
    if (k != prefix.top && logit_error_[k] * kSlack + prefix.eta[k] - prefix.depth[k] >= low) return false;
  return true;
}

SoftmaxTau SoftmaxBudget::l(const SoftmaxPrefix& prefix) const {
  const double residue = folds() ? 1.01 * kU32 * std::abs(prefix.max_logit) : 0;
  Sum sum = sum_of(prefix, max_error(prefix) + residue);
  if (top_is_certain(prefix)) {
    const double before = excess_weight(1, 0, sum.den[prefix.top]),
                 own = residue + (sum.den[prefix.top] - sum.score[prefix.top]);
    sum.psi -= (before - excess_weight(1, 0, own)) / prefix.sum * (1 - 0x1p-40);
    sum.score_part -= (sum.score[prefix.top] - residue) / prefix.sum * (1 - 0x1p-40);
  }
  const double l = prefix.sum;
  const double floor =
      static_cast<double>(prefix.depth.size()) * kMinNormal32 * exp2_64(shift(prefix)) + 4 * kMinSubnormal32;
  const double tau = l * ((1 + sum.psi) * (1 + sum.error) - 1) * kSlack + floor;
  return split(tau, l * sum.score_part, l * sum.exp_part, l * sum.error, 0, 0, floor);
}

std::vector<BoundTerm> softmax_bound_terms(const Problem& raw, const Arithmetic& arithmetic) {
  const SoftmaxProblem problem(raw);
  const Truth layouts = start_truth(problem);
  std::vector<BoundTerm> terms;
  for (std::string_view name : kSoftmaxTerms)
    terms.push_back({std::string(name), std::vector<std::vector<double>>(layouts.outputs.size())});
  terms.push_back({"output", std::vector<std::vector<double>>(layouts.outputs.size())});
  for (std::int64_t i = 0; i < problem.params().rows; ++i) {
    const SoftmaxRowResult row = evaluate_softmax_row(problem, problem.row(i), arithmetic);
    std::size_t next = 0;
    const auto add = [&](const TensorLayout* layout, const std::vector<SoftmaxTau>& taus,
                         const std::vector<double>& mids) {
      if (layout == nullptr) return;
      for (std::size_t j = 0; j < taus.size(); ++j) {
        for (std::size_t t = 0; t < kSoftmaxTerms.size(); ++t)
          terms[t].outputs[next].push_back(row.out_of_range.empty() ? taus[j].terms[t] : kInf);
        terms.back().outputs[next].push_back(ulp(layout->format, mids[j]) / 2);
      }
      ++next;
    };
    add(problem.y(), row.y, row.truth.y_mid);
    add(problem.lse(), row.lse, {row.truth.lse_mid});
    add(problem.m(), row.m, row.truth.m_mid);
    add(problem.l(), row.l, row.truth.l_mid);
  }
  return terms;
}

}  // namespace assay
