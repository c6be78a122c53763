// One softmax row in fp64 with proven errors: what fast.cc computes and budget.cc bounds from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle/ops/softmax/problem.h"

namespace assay {

/// The softmax of a row's first finite keys, relative to the largest computed logit. Arrays are parallel to those keys.
struct SoftmaxPrefix {
  std::size_t top = 0;                   ///< index of that logit
  double max_logit = 0, max_radius = 0;  ///< M, the exact maximum, within max_radius
  std::vector<double> depth;             ///< D_k = t_top - t_k (computed)
  std::vector<double> eta;               ///< |ln(weight_k / e^(t_k - t_top))| <= eta_k
  std::vector<double> weight;            ///< e^-D_k (computed)
  double sum = 0, sum_radius = 0;        ///< L relative to M, within sum_radius
  double excess = 0;                     ///< sum is off by at most excess relative to t_top
};

/// e^x - 1 from above for x >= 0.
double expm1_upper(double x);
/// weight (e^eps - 1) from above; from the depth where eps is large, so that a huge eps on a key of no weight gives no
/// 0 * inf.
double excess_weight(double weight, double depth, double eps);

/// `row`'s finite keys [0, count), count > 0. `reuse`: the analysis of fewer of them, whose arrays may be kept.
void analyse_prefix(const SoftmaxRow& row, const std::vector<std::int32_t>& finite, std::size_t count,
                    SoftmaxPrefix& reuse);

/// What makes up a tau, to first order.
enum class SoftmaxTerm : std::uint8_t { kScore, kExp, kRowSum, kNormalise, kLog, kFloor };
inline constexpr std::array<std::string_view, 6> kSoftmaxTerms{"score", "exp", "row sum", "normalise", "log", "floor"};

struct SoftmaxTau {
  double tau = 0;
  std::array<double, kSoftmaxTerms.size()> terms{};  ///< parts of tau: they sum to it where it is finite
};

/// T0 of one row for one declared arithmetic (numerics.md 2.2, 2.3 with the corrections of 2.14; derivation in
/// budget.cc).
class SoftmaxBudget {
 public:
  SoftmaxBudget(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite,
                const Arithmetic& arithmetic);

  /// Empty: the row's logits, and everything computed from the keys of `prefix`, stay inside their formats.
  std::string out_of_range() const;
  std::string out_of_range(const SoftmaxPrefix& prefix) const;
  std::vector<SoftmaxTau> y(const SoftmaxPrefix& prefix) const;  ///< parallel to the finite keys
  SoftmaxTau lse(const SoftmaxPrefix& prefix) const;             ///< in the declared base
  SoftmaxTau m(const SoftmaxPrefix& prefix) const;
  SoftmaxTau l(const SoftmaxPrefix& prefix) const;
  /// y of an empty row under EmptyOutput::kMean.
  SoftmaxTau mean() const;

 private:
  struct Sum;  ///< the bound's view of one prefix

  bool folds() const;     ///< the scale may be folded into the exponential
  bool on_score() const;  ///< it may be multiplied to x first
  bool running(const SoftmaxPrefix& prefix) const;
  double linear(std::size_t k) const { return row_.linear[static_cast<std::size_t>(finite_[k])]; }
  std::int32_t key(std::size_t k) const { return row_.key[static_cast<std::size_t>(finite_[k])]; }
  std::vector<double> rescalings(const SoftmaxPrefix& prefix) const;
  double chain(std::size_t count) const;
  double largest_max(const SoftmaxPrefix& prefix) const;
  double shift(const SoftmaxPrefix& prefix) const;
  double max_error(const SoftmaxPrefix& prefix) const;
  bool top_is_certain(const SoftmaxPrefix& prefix) const;
  Sum sum_of(const SoftmaxPrefix& prefix, double common) const;

  const SoftmaxParams& params_;
  const SoftmaxRow& row_;
  const std::vector<std::int32_t>& finite_;
  const Arithmetic& arith_;
  bool bias_;
  double ex2_, normalize_;
  std::vector<double> logit_error_;  ///< of t_k in fp32, before any maximum is subtracted
};

/// Truth and bounds of one row.
struct SoftmaxRowResult {
  SoftmaxTruth truth;
  std::vector<SoftmaxTau> y, lse, m, l;  ///< parallel to the truth's arrays; lse has one
  std::string out_of_range;
};
SoftmaxRowResult evaluate_softmax_row(const SoftmaxProblem& problem, const SoftmaxRow& row,
                                      const Arithmetic& arithmetic);

}  // namespace assay
