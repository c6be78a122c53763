// The worst legal merge: every operation errs as far as its declaration allows, all in one direction; it must stay
// inside the bound, and nearly reach it, so no term of the bound is missing or idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases/materialize.h"
#include "oracle/measure.h"
#include "oracle/ops/merge/problem.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-24;
constexpr double kExponential = 2.5 * 0x1p-23;
constexpr double kDivide = 2 * kU;
constexpr double kLog = 0x1p-22;

Arithmetic declared(bool chain, bool folded) {
  Arithmetic a;
  a.scale_form = folded ? ScaleForm::kFolded : ScaleForm::kOnScore;
  a.exponential = Exponential::kEx2Approx;
  a.normalize = chain ? Normalize::kEveryStep : Normalize::kDivide;
  a.subnormals = Subnormals::kKept;
  a.max_policy = chain ? MaxPolicy::kEveryTile : MaxPolicy::kGlobal;
  a.tile_order = TileOrder::kForward;
  return a;
}

struct Merged {
  std::vector<double> o;
  double lse = 0;  ///< natural
};

/// exp(x) with the argument's and the function's error in direction s; exact for x = 0.
double exponential(double x, double s) {
  return x == 0 ? 1 : std::exp(x * (1 - s * 3.1 * kU)) * (1 + s * kExponential);
}

/// Weights of the parts in `up` err in direction s, the others against it; terms of channel c in the direction of s
/// times their sign.
Merged in_two_passes(const MergeProblem& problem, const MergeRow& row, double s, const std::vector<bool>& up,
                     bool folded) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const double m = *std::max_element(row.lse.begin(), row.lse.end()) * problem.log_base();
  Merged out{std::vector<double>(dv, 0.0), 0};
  double sum = 0, sum_up = 0;
  std::vector<double> weight;
  for (std::size_t k = 0; k < row.part.size(); ++k) {
    const double x = row.lse[k] * problem.log_base() - m;
    weight.push_back(exponential(x, up[k] ? s : -s));
    sum = (sum + weight[k]) * (1 - s * kU);
    sum_up = (sum_up + exponential(x, s)) * (1 + s * kU);
  }
  for (std::size_t c = 0; c < dv; ++c)
    for (std::size_t k = 0; k < row.part.size(); ++k) {
      const double term = weight[k] / sum * row.o[k * dv + c];
      out.o[c] = (out.o[c] + term * (1 + (term > 0 ? s : -s) * (kDivide + kU)));
      out.o[c] *= 1 + (out.o[c] > 0 ? s : -s) * kU;
    }
  const double log = std::log(sum_up);
  out.lse = m + log + s * kLog * std::max(std::log(2.0), log) + (folded ? s * 3 * kU * std::abs(m) : 0);
  out.lse += s * kU * std::abs(out.lse);
  return out;
}

/// Pairwise merges from the first part on, weights of the parts so far in direction s.
Merged in_a_chain(const MergeProblem& problem, const MergeRow& row, double s) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  Merged state{{row.o.begin(), row.o.begin() + static_cast<std::ptrdiff_t>(dv)}, row.lse[0] * problem.log_base()};
  for (std::size_t k = 1; k < row.part.size(); ++k) {
    const double part = row.lse[k] * problem.log_base(), m = std::max(state.lse, part);
    const double a = exponential(state.lse - m, s), b = exponential(part - m, -s), b_up = exponential(part - m, s);
    for (std::size_t c = 0; c < dv; ++c) {
      const double x = a / (a + b) * state.o[c], y = b / (a + b) * row.o[k * dv + c];
      state.o[c] = x * (1 + (x > 0 ? s : -s) * (kDivide + 2 * kU)) + y * (1 + (y > 0 ? s : -s) * (kDivide + 2 * kU));
      state.o[c] *= 1 + (state.o[c] > 0 ? s : -s) * kU;
    }
    state.lse = m + std::log(a + b_up) * (1 + s * 2 * kU) + s * (kU + kLog * std::log(2.0));
    state.lse += s * kU * std::abs(state.lse);
  }
  return state;
}

/// Largest shares of tau, o and LSE; nothing of it rejected.
std::pair<double, double> worst_shares(const std::string& line, bool chain, bool folded) {
  const Problem raw = materialize(parse_case("merge dtype=fp32 rows=1 " + line));
  const MergeProblem problem(raw);
  const MergeRow row = problem.row(0);
  const Evaluation e = op_named("merge").evaluate(raw, declared(chain, folded), Level::kT0);
  const OutputTruth& o = e.truth.outputs[0];
  std::pair<double, double> shares;
  const auto share = [&](std::size_t output, std::size_t i, double value) {
    const double tau = e.bound.outputs[output].tau[i], mid = e.truth.outputs[output].mid[i];
    EXPECT_TRUE(accepted(e, output, i, encode(Format::kFp32, value)))
        << line << " output " << output << " " << i << ": " << value << " for " << mid << " tau " << tau;
    return std::abs(value - mid) / tau;
  };
  for (const double s : {1.0, -1.0})
    for (std::size_t c = 0; c < o.mid.size(); ++c) {
      std::vector<bool> up;  // parts that pull channel c up
      for (std::size_t k = 0; k < row.part.size(); ++k) up.push_back(row.o[k * o.mid.size() + c] > o.mid[c]);
      const Merged merged = chain ? in_a_chain(problem, row, s) : in_two_passes(problem, row, s, up, folded);
      shares.first = std::max(shares.first, share(0, c, merged.o[c]));
      shares.second = std::max(shares.second, share(1, 0, merged.lse / problem.log_base()));
    }
  return shares;
}

TEST(MergeWorst, ALegalKernelAtItsLimitsStaysInsideAndUsesATenthOrMore) {
  // Which part of the bound leads: weights far apart; many equal parts; cancelling parts; large LSEs; base two.
  const std::string lines[] = {"parts=2 dv=8 lse_parts=part_levels(10)",
                               "parts=300 dv=4 o_parts=same_sign@1 lse_parts=constant(1)",
                               "parts=4 dv=8 o_parts=cancelling_pairs@1 lse_parts=normal(0.1)@2",
                               "parts=3 dv=8 lse_parts=normal(1,5000)@2",
                               "parts=5 dv=8 base=2 lse_parts=normal(3)@2",
                               "parts=64 dv=4 lse_parts=part_levels(-0.02)"};
  for (const std::string& line : lines)
    for (const bool chain : {false, true})
      for (const bool folded : {false, true}) {
        if (chain && folded) continue;
        const auto [o, lse] = worst_shares(line, chain, folded);
        EXPECT_GE(o, 0.1) << line << (chain ? " chain" : "") << (folded ? " folded" : "");
        EXPECT_GE(lse, 0.1) << line << (chain ? " chain" : "") << (folded ? " folded" : "");
      }
}

}  // namespace
}  // namespace assay
