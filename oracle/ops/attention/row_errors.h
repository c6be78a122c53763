// What fp64 leaves uncertain in one attention row: errors of its weights, and from them the radius of its outputs.
//
// u = 2^-53, gamma_n = n u / (1 - n u). Keys j with scores s_j, f_j = scale q_scale k_scale_j, y_j = f_j s_j, x_j = cap(y_j) + b_j; r the
// key of the largest computed x; D_j = x_r - x_j.
//
//   score    |ds_j| <= gamma_d A_j, A_j >= sum_c |q_c k_jc|: d - 1 additions of exact products; 0 where (X) of numerics.md 3.1 holds
//   x_j      the factor and the product: |f| ds_j + 2u |y_j|; a soft cap: |f| ds_j + 12u min(|y_j|, cap), since the rounding of y and
//            of y / cap, 3u |y|, is damped by 1 / cosh^2 (|z| / cosh^2 z <= |tanh z|), tanh64 adds 8u and the product u; the bias:
//            u |b_j| where it is itself a sum, u |x_j|
//   t_j      computed log-weight, x_j - x_r. One factor and no cap: f (s_j - s_r) + (b_j - b_r), differences first, so that rows with
//            huge logits stay sharp where weight remains:
//              eta_j = |f| (ds_j + ds_r) + 1.01 u (3 |f (s_j - s_r)| + |b_j - b_r| + |t_j|) + (u (|b_j| + |b_r|) if b is a sum)
//            else eta_j = the errors of x_j and x_r + 1.01 u |t_j|
//   w_j      e^t_j by exp64, below 2^-800 set to 0, rounded to B bits so that w_j v_jc is exact (fp32 inputs: not rounded, and every
//            product is):  w^_j = w_j (1 + theta_j) + phi_j,  |theta_j| <= psi_j = e^eta_j (1 + 2^-52) (1 + 2^-B) - 1,  |phi_j| <= 2^-800
//   sink     e^(sink - x_r): psi_s with eta_s = the error of x_r + u |sink - x_r|
//
// Let p be the exact weights over the exact denominator, Psi = sum p_j psi_j + p_s psi_s <= 2^-9, w the values with their factors:
//
//   |o^ - o| <= [sum_j p_j psi_j |w_j - o| + p_s psi_s |o|] / (1 - Psi)          weights (numerics.md (C), first form; as in budget.cc)
//             + rho sum p |w|                                                    factors by block: rounded once, weights to B bits again
//             + gamma_m sum p |w| + (gamma_l + 4u) |o|                           sums: tiles of kKeyTile keys from zero, then tiles; the
//                                                                                row sum in 16 lanes; division, one factor
//             + (n + 1) 2^-800 max |w| / denominator + 2^-1070                   weights set to 0 (kSinkAbove: (n + 1) 2^-1000 max |w|);
//                                                                                roundings in the subnormal range
//
// The first sum without a pass over the values: for any t, sum p psi |w - o| <= t (sum p |w| + |o|) + (max |w| + |o|) sum p (psi - t)+;
// t is `common`, the last sum `excess`. Computed p stand for exact ones within the factor 1.01.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "oracle/ops/attention/analysis.h"

namespace assay {

/// A sink further above the keys than this is taken to lie that far above: all that is lost is e^-700 < 2^-1000 of their weight.
inline constexpr double kSinkAbove = 700;

/// Bits that weights are rounded to, so that products with values of the format are exact in fp64; 53: not rounded.
int weight_bits(Format input);

/// Bounds on the relative errors psi of a row's weights.
struct WeightErrors {
  double common = 0;   ///< t above
  double excess = 0;   ///< at least sum over the keys of (w_j / sum w) (psi_j - common)+
  double largest = 0;  ///< at least every psi_j
  double top = 0;      ///< absolute, of x_r
};

/// psi from eta.
double weight_error(double eta, int bits);

/// eta_j of every key, and the error of x_r. `q_spread` as in VectorFacts.
void log_weight_errors(const AttentionParams& params, const RowAnalysis& a, double q_spread, std::vector<double>& eta, double& top);

/// From eta by key. p_j times `normalise` is the key's share of the sum of weights.
WeightErrors weight_errors(const RowAnalysis& a, const std::vector<double>& eta, double top, double normalise, int bits);

/// Of a row whose keys are alike: one factor, no bias, no cap; depths up to `deepest`, |factor| ds_j <= score_error.
WeightErrors alike_weight_errors(double keys, double score_error, double top, double deepest, int bits);

/// Sets o_radius, lse_radius and psi64 from o, abs_p, lse and the sums. +inf where Psi is too large for the theorem.
void set_radius(const AttentionParams& params, const WeightErrors& errors, RowAnalysis& a);

/// The same with the sum over the values itself in place of its majorant, and exact A_j: a pass over keys and values.
void sharpen_radius(const AttentionProblem& problem, RowAnalysis& a);

/// Whether a bound could tell the largest |factor| |q| |k_j| from |factor| times the sum of |q_c k_jc|: the error of such a score in some
/// arithmetic of the family is comparable to P's rounding, or scores may leave a format.
bool magnitudes_matter(const AttentionParams& params, double factor, double hull);

/// hull_, factor_ and logit_without_weight of `a`, over the keys of x = -inf. magnitude(key): at least sum |q_c k_c|;
/// infinite where the score is not finite: there the finite products count, whose sum must not become an infinity of
/// the other sign on the way.
void hulls_without_weight(const AttentionProblem& problem, const std::vector<std::int32_t>& keys,
                          const std::function<double(std::int32_t)>& magnitude, RowAnalysis& a);

}  // namespace assay
