// The bound T0 of a merge for one declared arithmetic (numerics.md 2.7 (M) with exact inputs, corrected by 2.14).
//
// Natural-log units; u = 2^-24; D_s = ln B (lse_max - lse_s), w_s = e^-D_s, L = sum w_s, p_s = w_s / L. Weights are
// summed against the largest LSE, known before or running, or parts are merged pairwise (pairwise.cc); undeclared: the
// worse of both.
//   weight      |eta_s| <= d_s = 3.2u D_s + (1 + R) eps_exp    the difference, its product with log2 e, one exponential; a running
//                                                              maximum splits D_s over R rescalings and rounds each share
//   row sum     s_l = gamma_{S+R}
//   o           |o^ - o| <= [sum p psi_s |o_s - o| + (gamma_{S+R+1} + u_n) sum p (1 + psi_s) |o_s|] / ((1 - Psi) (1 - s_l))
//                           + |o| s_l / (1 - s_l) + floor                                   psi = e^d - 1, Psi = sum p psi
//               u_n on every term: a kernel may normalise the weights first.
//   lse         Psi + s_l / (1 - s_l) + log (2^-22 max(ln 2, ln L) + 2u ln L) + u |lse|
//               + [not on the difference] 4u |lse_max|, the residue of fl(lse_max log2 e) and conversions.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/ops/merge/analysis.h"
#include "oracle/ops/merge/layouts.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep0;
constexpr double kSlack = 1 + 0x1p-8;  // products of two first-order terms, and fp64 rounding of the bound itself

double expm1_upper(double x) { return x <= 1 ? x + x * x : exp64(x); }

double& term(MergeTau& tau, MergeTerm which) { return tau.terms[static_cast<std::size_t>(which)]; }

/// Scales the terms, which are first-order parts, to sum to tau.
void settle(MergeTau& tau) {
  if (!(tau.tau >= 0)) tau.tau = kInf;
  double sum = 0;
  for (double part : tau.terms) sum += part;
  for (double& part : tau.terms) part = sum > 0 && tau.tau < kInf ? part * (tau.tau / sum) : tau.tau;
}

class MergeBudget {
 public:
  MergeBudget(const MergeProblem& problem, const MergeRow& row, const MergeAnalysis& a, const Arithmetic& arithmetic)
      : params_(problem.params()),
        log_base_(problem.log_base()),
        row_(row),
        a_(a),
        arith_(arithmetic),
        dv_(a.o.size()) {
    ex2_ = exponential_error(arithmetic.exponential);
    normalize_ = arithmetic.normalize == Normalize::kReciprocal ? 3 * kU32
                 : arithmetic.normalize == Normalize::kDivide   ? 2 * kU32
                                                                : 6 * kU32;
    converts_ = arithmetic.scale_form != ScaleForm::kOnScore;
  }

  MergeBound bound();

 private:
  bool sums() const { return arith_.normalize != Normalize::kEveryStep; }
  bool chains() const { return arith_.normalize == Normalize::kEveryStep || arith_.normalize == Normalize::kUnknown; }
  std::string out_of_range() const;
  double rescalings() const;
  void sum_form(MergeBound& bound) const;
  void chain_form(MergeBound& bound) const;

  const MergeParams& params_;
  double log_base_;
  const MergeRow& row_;
  const MergeAnalysis& a_;
  const Arithmetic& arith_;
  std::size_t dv_;
  double ex2_ = 0, normalize_ = 0;
  bool converts_ = false;
};

/// How often the maximum may rise after the first part, over the orders that the declaration leaves open.
double MergeBudget::rescalings() const {
  if (arith_.max_policy == MaxPolicy::kGlobal) return 0;
  const std::size_t parts = row_.lse.size();
  const auto walk = [&](bool forward) {
    double records = 0, top = -kInf;
    for (std::size_t i = 0; i < parts; ++i) {
      const double lse = row_.lse[forward ? i : parts - 1 - i];
      records += lse > top;
      top = std::max(top, lse);
    }
    return records - 1;
  };
  if (arith_.tile_order == TileOrder::kForward) return walk(true);
  if (arith_.tile_order == TileOrder::kBackward) return walk(false);
  return static_cast<double>(parts) - 1;
}

std::string MergeBudget::out_of_range() const {
  const auto above = [](std::string_view what, double value, double limit) {
    return fmt::format("{}: {:.6g} > {:.6g}", what, value, limit);
  };
  double hull = 0, largest = 0;
  for (double lse : row_.lse) largest = std::max(largest, std::abs(lse) * log_base_);
  if (converts_ && !(largest * kLog2E * kSlack <= kMax32)) return above("lse log2 e", largest * kLog2E, kMax32);
  if (const double residue = 1.01 * kU32 * std::abs(a_.max_lse) * kLog2E; converts_ && !(residue <= 126))
    return above("weight, residual exponent of the maximum", residue, 126);
  for (std::size_t c = 0; c < dv_; ++c) {
    double sum = 0, most = 0;
    for (std::size_t s = 0; s < row_.part.size(); ++s) {
      const double o = std::abs(row_.o[s * dv_ + c]);
      sum += a_.weight[s] * o;
      most = std::max(most, o);
    }
    hull = std::max(hull, sums() ? sum : most);
  }
  // One part alone is copied or multiplied by 1.
  if (const double slack = row_.part.size() > 1 ? kSlack : 1; !(hull * slack <= kMax32))
    return above("O accumulator", hull, kMax32);
  if (!(gamma32(static_cast<double>(row_.part.size()) * 2 + 2) < 0.5))
    return above("parts", static_cast<double>(row_.part.size()), 0x1p21);
  return {};
}

void MergeBudget::sum_form(MergeBound& bound) const {
  const std::size_t parts = row_.part.size();
  const auto n = static_cast<double>(parts);
  const double rises = rescalings();
  std::vector<double> psi(parts), weight_part(parts);
  double psi_sum = 0, weights_sum = 0;
  const double exp_part = (1 + rises) * ex2_;
  for (std::size_t s = 0; s < parts; ++s) {
    weight_part[s] = 3.2 * kU32 * a_.depth[s];
    const double p = a_.weight[s] / a_.sum;
    psi[s] =
        expm1_upper(std::min(weight_part[s] + exp_part, 100.0)) * kSlack;  // D beyond 100 / 3.2u has no weight at all
    psi_sum += p * psi[s];
    weights_sum += p * weight_part[s];
  }
  const double row_sum = gamma32(n + rises), accumulate = gamma32(n + rises + 1);
  const double flushed = arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * (1 + n / a_.sum);
  for (std::size_t c = 0; c < dv_; ++c) {
    double moved = 0, moved_weights = 0, abs_p = 0, abs_all = 0;
    for (std::size_t s = 0; s < parts; ++s) {
      const double o = row_.o[s * dv_ + c], p = a_.weight[s] / a_.sum,
                   deviation = std::abs(o - a_.o[c]) + a_.o_radius[c];
      moved += p * psi[s] * deviation;
      moved_weights += p * weight_part[s] * deviation;
      abs_p += p * (1 + psi[s]) * std::abs(o);
      abs_all += std::abs(o);
    }
    // Each product and each rescaling may round to a subnormal number.
    const double floor = 2 * kMinNormal32 / a_.sum * abs_all + flushed + (n + rises + 4) * kMinSubnormal32;
    MergeTau& tau = bound.o[c];
    tau.tau = ((moved + (accumulate + normalize_) * abs_p) / ((1 - psi_sum) * (1 - row_sum)) +
               std::abs(a_.o[c]) * row_sum / (1 - row_sum)) *
                  kSlack +
              floor;
    term(tau, MergeTerm::kWeights) = moved_weights;
    term(tau, MergeTerm::kExp) = std::max(0.0, moved - moved_weights);
    term(tau, MergeTerm::kSum) = std::abs(a_.o[c]) * row_sum;
    term(tau, MergeTerm::kAccumulate) = accumulate * abs_p;
    term(tau, MergeTerm::kNormalise) = normalize_ * abs_p;
    term(tau, MergeTerm::kFloor) = floor;
  }
  const double ln_l = std::max(0.0, log64(a_.sum));
  const double log = kLg2 * std::max(kLn2, ln_l + row_sum) + 2 * kU32 * ln_l + kU32 * std::abs(a_.lse);
  const double convert = converts_ ? 4 * kU32 * std::abs(a_.max_lse) + 4 * kU32 * std::abs(a_.lse) : 0;
  bound.lse.tau = (psi_sum + row_sum / (1 - row_sum) + log + convert) * kSlack + 4 * kMinSubnormal32;
  term(bound.lse, MergeTerm::kWeights) = weights_sum;
  term(bound.lse, MergeTerm::kExp) = exp_part;
  term(bound.lse, MergeTerm::kSum) = row_sum;
  term(bound.lse, MergeTerm::kLog) = log + convert;
}

/// Takes the chain's bound where it is the larger one, or the only one.
void MergeBudget::chain_form(MergeBound& bound) const {
  const auto widen = [](MergeTau& tau, double chain) {
    if (!(chain > tau.tau)) return;
    tau.tau = chain;
    tau.terms = {};
    term(tau, MergeTerm::kChain) = chain;
  };
  const double flushed =
      arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * (1 + static_cast<double>(row_.part.size()));
  for (const bool forward : {true, false}) {
    if (arith_.tile_order == (forward ? TileOrder::kBackward : TileOrder::kForward)) continue;
    const ChainBound chain = bound_chain(row_, a_, log_base_, arith_, forward);
    for (std::size_t c = 0; c < dv_; ++c) widen(bound.o[c], chain.o[c] + flushed + 4 * kMinSubnormal32);
    widen(bound.lse, chain.lse + 4 * kMinSubnormal32);
  }
}

MergeBound MergeBudget::bound() {
  MergeBound bound;
  bound.o.resize(dv_);
  bound.lost_depth = 120 * kLn2;
  bound.out_of_range = out_of_range();
  if (!bound.out_of_range.empty()) {
    for (MergeTau& tau : bound.o) tau.tau = kInf, settle(tau);
    bound.lse.tau = kInf;
    settle(bound.lse);
    return bound;
  }
  if (sums()) sum_form(bound);
  if (chains()) chain_form(bound);
  bound.lse.tau /= log_base_;
  for (MergeTau& tau : bound.o) settle(tau);
  settle(bound.lse);
  return bound;
}

}  // namespace

MergeBound bound_merge(const MergeProblem& problem, const MergeRow& row, const MergeAnalysis& a,
                       const Arithmetic& arithmetic) {
  return MergeBudget(problem, row, a, arithmetic).bound();
}

std::vector<BoundTerm> merge_bound_terms(const Problem& raw, const Arithmetic& arithmetic) {
  const MergeProblem problem(raw);
  const std::size_t outputs = problem.lse() != nullptr ? 2 : 1;
  std::vector<BoundTerm> terms;
  for (std::string_view name : kMergeTerms)
    terms.push_back({std::string(name), std::vector<std::vector<double>>(outputs)});
  terms.push_back({"output", std::vector<std::vector<double>>(outputs)});
  const auto add = [&](std::size_t output, const MergeTau& tau, Format format, double mid) {
    for (std::size_t t = 0; t < kMergeTerms.size(); ++t) terms[t].outputs[output].push_back(tau.terms[t]);
    terms.back().outputs[output].push_back(ulp(format, mid) / 2);
  };
  for (std::int64_t i = 0; i < problem.params().rows; ++i) {
    const MergeRowResult result = evaluate_merge_row(problem, problem.row(i), arithmetic);
    for (std::size_t c = 0; c < result.bound.o.size(); ++c)
      add(0, result.bound.o[c], problem.o().format, result.truth.o_mid[c]);
    if (outputs > 1) add(1, result.bound.lse, Format::kFp32, result.truth.lse_mid);
  }
  return terms;
}

}  // namespace assay
