// Bound of a chain of pairwise merges (FlashInfer's merge_state), one part after the other.
//
// A step merges the state (o, L) so far with a part (o_k, l_k): M = max(L, l_k), a = exp(L - M), b = exp(l_k - M), one
// of them 1; o' = a/(a + b) o + b/(a + b) o_k, L' = M + ln(a + b). Natural units, u = 2^-24. Let the state be off by e
// per channel and lambda in L, z = |L - l_k|, alpha and beta the exact weights. The ratio a/b is off by e^rho,
//   rho = lambda + 3.2u (z + lambda) + eps_exp       (one subtraction, a product with log2 e, one exponential; the other is 1),
// and since d alpha / d rho = alpha beta <= alpha beta e^|rho|,
//   e'      <= alpha e + alpha beta (e^rho - 1) (|o - o_k| + e) + r (alpha (|o| + e) + beta |o_k|) + floor,   r = u_n + 3u
//   lambda' <= alpha (e^lambda - 1) + min(alpha, beta) e^lambda (e^(3.2u (z + lambda) + eps_exp) - 1)
//              + u + eps_log ln 2 + 2u ln 2 + u |L'|     (+ 4u max |L|, |l_k|, |L'| where units may be converted on the way).
#include <algorithm>
#include <cmath>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/ops/merge/analysis.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

constexpr double kVanishes = 104;

double expm1_upper(double x) { return x <= 1 ? x + x * x : exp64(std::min(x, 700.0)); }

}  // namespace

ChainBound bound_chain(const MergeRow& row, const MergeAnalysis& a, double log_base, const Arithmetic& arithmetic,
                       bool forward) {
  constexpr double kSlack = 1 + 0x1p-20;  // fp64 rounding of the bound itself; second-order terms are written out
  const std::size_t dv = a.o.size(), parts = row.part.size();
  const double ex2 = exponential_error(arithmetic.exponential);
  const double round = 2 * kU32 + 3 * kU32;
  const bool converts = arithmetic.scale_form != ScaleForm::kOnScore;
  const auto at = [&](std::size_t step) { return forward ? step : parts - 1 - step; };
  ChainBound bound{std::vector<double>(dv, 0.0), 0};
  std::vector<double> o(dv);
  for (std::size_t c = 0; c < dv; ++c) o[c] = row.o[at(0) * dv + c];
  double state = row.lse[at(0)] * log_base;
  for (std::size_t step = 1; step < parts; ++step) {
    const std::size_t k = at(step);
    const double part = row.lse[k] * log_base, top = std::max(state, part), z = std::abs(state - part);
    const double small = exp64(-z), log_sum = log64(1 + small), merged = top + log_sum;
    const double alpha = (state >= part ? 1 : small) / (1 + small), beta = (state >= part ? small : 1) / (1 + small);
    const double exponential = 3.2 * kU32 * (z + bound.lse) + ex2, rho = bound.lse + exponential;
    const bool vanishes = z - rho > kVanishes;  // a kernel sees the smaller weight as less than 2^-150
    const double moved = vanishes ? 0 : rho > 100 ? 1 : std::min(1.0, alpha * beta * expm1_upper(rho));
    const double shifted = vanishes ? 0
                           : rho > 100
                               ? kLn2
                               : std::min(alpha, beta) * (1 + expm1_upper(bound.lse)) * expm1_upper(exponential);
    for (std::size_t c = 0; c < dv; ++c) {
      const double v = row.o[k * dv + c], e = bound.o[c];
      bound.o[c] =
          (alpha * e + moved * (std::abs(o[c] - v) + e) + round * (alpha * (std::abs(o[c]) + e) + beta * std::abs(v)) +
           2 * kMinNormal32 * (std::abs(o[c]) + e + std::abs(v)) + 4 * kMinSubnormal32) *
          kSlack;
      o[c] = alpha * o[c] + beta * v;
    }
    // Both sums lie between the larger LSE and ln 2 above it.
    double lse = std::min(alpha * expm1_upper(bound.lse) + shifted, bound.lse + kLn2) + kMinNormal32 + kU32 +
                 (0x1p-22 + 2 * kU32) * kLn2 + kU32 * std::abs(merged);
    if (converts) lse += 4 * kU32 * std::max({std::abs(state), std::abs(part), std::abs(merged)});
    bound.lse = lse * kSlack + 4 * kMinSubnormal32;
    state = merged;
  }
  return bound;
}

}  // namespace assay
