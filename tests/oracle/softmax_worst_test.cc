// The worst legal softmax: every operation errs as far as its declaration allows, all in one direction; it must stay
// inside the bound, and nearly reach it, so no term of the bound is missing or idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases/materialize.h"
#include "oracle/measure.h"
#include "oracle/ops/softmax/problem.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-24;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// One kernel's choices. Errors: fp32 operations u, exp2 2.5 ulp, log2 2^-22; the exponential's argument is a
/// difference and a product with log2 e, 3u together.
struct Kernel {
  bool folded = false;
  int tile = 0;  ///< 0: the maximum is known before
  double exponential = 2.5 * 0x1p-23;
  double divide = 2 * kU;

  Arithmetic declared(std::int64_t n) const {
    Arithmetic a;
    a.scale_form = folded ? ScaleForm::kFolded : ScaleForm::kOnScore;
    a.exponential = exponential > 1e-5 ? Exponential::kPolynomial3 : Exponential::kEx2Approx;
    a.row_sum_tree = RowSumTree::kSequential;
    a.normalize = divide > 2 * kU ? Normalize::kReciprocal : Normalize::kDivide;
    a.subnormals = Subnormals::kKept;
    a.max_policy = tile > 0 ? MaxPolicy::kEveryTile : MaxPolicy::kGlobal;
    a.tile_order = TileOrder::kForward;
    a.tile_n = static_cast<int>(tile > 0 ? tile : n);
    return a;
  }
};

struct State {
  double m = -kInf, l = 0;  ///< m as the kernel knows it, l relative to it
};

class WorstRow {
 public:
  WorstRow(const SoftmaxRow& row, bool bias, const Kernel& kernel) : kernel_(kernel) {
    for (std::size_t k = 0; k < row.key.size(); ++k) {
      t_.push_back(row.linear[k] + row.bias[k]);
      error_.push_back((kernel.folded && !bias ? 0 : kU * std::abs(row.linear[k])) +
                       (bias ? kU * std::abs(t_.back()) : 0));
    }
  }

  /// The states after each tile when all terms err in direction `s`, but for the logit `apart`, which errs the other
  /// way. `residue`: what fl(m c^) is off by in direction s, in units of u |m|, where m is `shared`.
  std::vector<State> run(double s, std::size_t apart, double shared = kInf, double residue = 1) const {
    std::vector<State> states;
    const std::size_t tile = kernel_.tile > 0 ? static_cast<std::size_t>(kernel_.tile) : t_.size();
    State state;
    for (std::size_t first = 0; first < t_.size(); first += tile) {
      const std::size_t end = std::min(t_.size(), first + tile);
      double m = state.m;
      for (std::size_t k = first; k < end; ++k) m = std::max(m, logit(k, s, apart));
      if (state.m > -kInf && m > state.m)
        state.l *= std::exp((state.m - m) * (1 - s * 3 * kU)) * (1 + s * kernel_.exponential) * (1 + s * kU);
      state.m = m;
      for (std::size_t k = first; k < end; ++k)
        state.l = (state.l + weight(logit(k, s, apart), m, s, m == shared ? residue : 1)) * (1 + s * kU);
      states.push_back(state);
    }
    return states;
  }

  /// y of `key` when it errs in direction s, everything else in the other. The exponential of the final maximum's tiles
  /// subtracts the same fl(m c^) as the numerator.
  double y(std::size_t key, double s) const {
    const double m = run(-s, key).back().m;
    const State end = run(-s, key, m, -1).back();
    return weight(logit(key, -s, key), m, s, 1) / end.l * (1 + s * kernel_.divide);
  }

  double lse(double s) const {
    const State end = run(s, t_.size()).back();
    const double log = std::log(end.l), converted = kernel_.folded ? s * 2 * kU * std::abs(end.m) : 0;
    return (end.m + log + converted + s * 0x1p-22 * std::max(std::log(2.0), log)) *
           (1 + s * kU * (end.m + log > 0 ? 1 : -1));
  }

 private:
  double logit(std::size_t k, double s, std::size_t apart) const { return t_[k] + (k == apart ? -s : s) * error_[k]; }
  double weight(double logit, double m, double s, double residue) const {
    const double d = (logit - m) * (1 - s * 3 * kU);
    return std::exp(d + (kernel_.folded ? s * residue * kU * std::abs(m) : 0)) * (1 + s * kernel_.exponential);
  }

  Kernel kernel_;
  std::vector<double> t_, error_;
};

/// Largest share of tau that the worst kernel uses, and nothing of it rejected.
double share(const Evaluation& e, std::size_t output, std::size_t i, double value) {
  const double code = round_to(Format::kFp32, value), tau = e.bound.outputs[output].tau[i];
  EXPECT_TRUE(accepted(e, output, i, encode(Format::kFp32, code)))
      << "output " << output << " element " << i << ": " << value << " for " << e.truth.outputs[output].mid[i]
      << " tau " << tau;
  return std::abs(value - e.truth.outputs[output].mid[i]) / tau;
}

struct Shares {
  double y = 0, lse = 0, l = 0, m = 0;
};

Shares worst_shares(const std::string& line, const Kernel& kernel) {
  const std::string steps = kernel.tile > 0 ? " steps=" + std::to_string(kernel.tile) : "";
  const Problem raw = materialize(parse_case("softmax dtype=fp32 lse=e " + line + steps));
  const SoftmaxProblem problem(raw);
  const Evaluation e = op_named("softmax").evaluate(raw, kernel.declared(problem.params().n), Level::kT0);
  EXPECT_TRUE(e.bound.out_of_range[0].empty()) << e.bound.out_of_range[0];
  const WorstRow row(problem.row(0), problem.params().data_mask == DataMask::kAdditive, kernel);
  Shares shares;
  const auto n = static_cast<std::size_t>(problem.params().n);
  for (const double s : {1.0, -1.0}) {
    for (std::size_t j = 0; j < n; j += std::max<std::size_t>(1, n / 24))
      if (e.truth.outputs[0].mid[j] > 1e-30) shares.y = std::max(shares.y, share(e, 0, j, row.y(j, s)));
    shares.lse = std::max(shares.lse, share(e, 1, 0, row.lse(s)));
    for (std::size_t i = 0; kernel.tile > 0 && i < e.truth.outputs[3].mid.size();
         i += std::max<std::size_t>(1, n / 256)) {
      const auto end = e.truth.outputs[0].mid.begin() +
                       static_cast<std::ptrdiff_t>(std::min(n, (i + 1) * static_cast<std::size_t>(kernel.tile)));
      const auto top = static_cast<std::size_t>(std::max_element(e.truth.outputs[0].mid.begin(), end) -
                                                e.truth.outputs[0].mid.begin());
      shares.l = std::max(shares.l, share(e, 3, i, row.run(s, top)[i].l));
    }
  }
  return shares;
}

TEST(SoftmaxWorst, ALegalKernelAtItsLimitsStaysInsideAndUsesAFifthOrMore) {
  const Kernel kernels[] = {{},
                            {.folded = true},
                            {.tile = 16},
                            {.folded = true, .tile = 16},
                            {.tile = 1},
                            {.folded = true, .tile = 8, .exponential = 9e-5 * 0.999},
                            {.divide = 3 * kU}};
  // Which part of the bound leads: the logarithm; the row sum; spread logits; large logits; a rising maximum; a few
  // keys; a bias on large scores.
  const std::string lines[] = {"n=1 x=constant(0)",
                               "n=2000 x=constant(1)",
                               "n=64 x=score_ladder(-3,4)",
                               "n=64 x=normal(1,300)@1",
                               "n=160 x=score_rising(1,16)@1",
                               "n=2 x=normal@1",
                               "n=48 scale=0.3 x=normal(20)@1 mask=additive mask.data=bias(40)@2"};
  for (const Kernel& kernel : kernels)
    for (const std::string& line : lines) {
      const Shares shares = worst_shares(line, kernel);
      const std::string what = line + (kernel.folded ? " folded" : "") + " tile " + std::to_string(kernel.tile);
      EXPECT_GE(shares.y, 0.2) << what;
      EXPECT_GE(shares.lse, 0.2) << what;
      EXPECT_GE(shares.l, kernel.tile > 0 ? 0.2 : 0) << what;
    }
}

}  // namespace
}  // namespace assay
