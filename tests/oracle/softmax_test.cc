// Softmax: the ball reference and the fp64 truth against an independent MPFR evaluation; correct kernels against the
// bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <map>

#include "kernels/runner.h"
#include "oracle/measure.h"
#include "oracle/ops/softmax/softmax.h"
#include "tests/oracle/op_problems.h"

namespace assay {
namespace {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::mpfr_float_backend<301>, mp::et_off>;

constexpr double kInf = std::numeric_limits<double>::infinity();

const Op& softmax() { return op_named("softmax"); }

/// What one output element must be. Numbers are good to about 900 bits relative to the sums they come from.
struct Expected {
  ClassSet classes = 0;
  Real value = 0;
};
using Outputs = std::map<std::string, std::vector<Expected>>;  // by role, in the order of rows

double stored(const Problem& problem, std::string_view role, std::int64_t row, std::int64_t j) {
  for (const Tensor& t : problem.inputs)
    if (t.layout.role == role)
      return decode(t.layout.format, load_code(t.bytes.data(), t.layout.format,
                                               t.layout.offset + row * t.layout.strides[0] + j * t.layout.strides[1]));
  throw std::out_of_range("no such input");
}

/// The definition in softmax.h, in MPFR, with the class rules written down a second time.
Outputs independent(const Problem& problem) {
  const SoftmaxParams p = softmax_params(problem.params);
  Outputs out;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    std::vector<int> kind;  // per key: 0 excluded, 1 number, 2 -inf, 3 +inf, 4 NaN
    std::vector<Real> t(static_cast<std::size_t>(p.n));
    for (std::int64_t j = 0; j < p.n; ++j) {
      const double x = stored(problem, "x", row, j), scale = static_cast<double>(p.scale);
      if (p.data_mask == DataMask::kBool && stored(problem, "mask", row, j) == 0) {
        kind.push_back(0);
        continue;
      }
      const double bias = p.data_mask == DataMask::kAdditive ? stored(problem, "mask", row, j) : 0;
      const double rough = scale * x + bias;  // only its class counts
      kind.push_back(rough != rough ? 4 : rough == kInf ? 3 : rough == -kInf ? 2 : 1);
      if (kind.back() == 1) t[static_cast<std::size_t>(j)] = Real(scale) * Real(x) + Real(bias);
    }
    const auto count = [&](int which, std::int64_t end) {
      return std::count(kind.begin(), kind.begin() + static_cast<std::ptrdiff_t>(end), which);
    };
    const auto state = [&](std::int64_t end, Real& m, Real& l) {
      m = l = 0;
      bool first = true;
      for (std::size_t j = 0; static_cast<std::int64_t>(j) < end; ++j) {
        if (kind[j] != 1) continue;
        if (first || t[j] > m) m = t[j];
        first = false;
      }
      for (std::size_t j = 0; static_cast<std::int64_t>(j) < end; ++j)
        if (kind[j] == 1) l += mp::exp(t[j] - m);
    };
    Real m, l;
    for (std::int64_t step = 0; p.steps > 0 && step * p.steps < p.n; ++step) {
      const std::int64_t end = std::min(p.n, (step + 1) * p.steps);
      state(end, m, l);
      const bool nan = count(4, end) > 0, plus = count(3, end) > 0, finite = count(1, end) > 0,
                 minus = count(2, end) > 0;
      const int largest = plus ? kPlusInf : finite ? kNumber : kMinusInf;
      out["m"].push_back({static_cast<ClassSet>(nan || plus ? largest | kNan : largest), m});
      out["l"].push_back({static_cast<ClassSet>(nan || plus ? kNan
                                                : finite    ? kNumber
                                                : minus     ? kZero | kNan
                                                            : kZero),
                          l});
    }
    state(p.n, m, l);
    const bool none = count(0, p.n) == p.n;
    const bool nan = count(4, p.n) > 0, plus = count(3, p.n) > 0, finite = count(1, p.n) > 0;
    const ClassSet empty_lse = p.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf;
    for (std::size_t j = 0; j < kind.size(); ++j) {
      Expected y;
      if (none || (!nan && !plus && !finite)) {
        y.classes = p.empty_output == EmptyOutput::kZero ? kZero : p.empty_output == EmptyOutput::kNan ? kNan : kNumber;
        y.value = Real(1) / Real(p.n);
        if (!none) y.classes |= kNan;
      } else if (nan || plus) {
        y.classes = kind[j] == 0 ? kNan | kZero : kNan;
      } else {
        y.classes = kind[j] == 1 ? kNumber : kZero;
        if (kind[j] == 1) y.value = mp::exp(t[j] - m) / l;
      }
      out["y"].push_back(y);
    }
    if (p.lse == LseBase::kNone) continue;
    Expected lse;
    if (none)
      lse.classes = empty_lse;
    else if (nan)
      lse.classes = kNan;
    else if (plus)
      lse.classes = kNan | kPlusInf;
    else if (!finite)
      lse.classes = static_cast<ClassSet>(kNan | kMinusInf | empty_lse);
    else {
      lse.classes = kNumber;
      lse.value = m + mp::log(l);
      if (p.lse == LseBase::kTwo) lse.value /= mp::log(Real(2));
    }
    out["lse"].push_back(lse);
  }
  return out;
}

Params random_params(Dice& dice) {
  Params p;
  p.set("rows", std::to_string(dice.between(0, 3)));
  p.set("n", std::to_string(dice.one_in(12) ? 0 : dice.between(1, 14)));
  p.set("dtype", dice.pick({"fp32", "fp16", "bf16"}));
  if (dice.one_in(3)) p.set("out", dice.pick({"fp32", "fp16", "bf16"}));
  if (dice.one_in(2)) p.set("scale", dice.pick({"-0.5", "0", "-0", "1e-45", "3e38", "0.1", "1e-20", "7"}));
  p.set("mask", dice.pick({"none", "bool", "additive"}));
  if (dice.one_in(2)) p.set("steps", std::to_string(dice.between(1, 16)));
  p.set("lse", dice.pick({"none", "e", "2"}));
  p.set("empty", dice.pick({"zero", "nan", "mean"}));
  p.set("empty_lse", dice.pick({"-inf", "inf"}));
  p.set("pad", std::to_string(dice.between(0, 2)));
  p.set("offset", std::to_string(dice.between(0, 2)));
  return p;
}

Problem random_problem(Dice& dice) {
  const Params params = random_params(dice);
  const Draw x =
      dice.pick({Draw::kRawBits, Draw::kModerate, Draw::kModerate, Draw::kSmallIntegers, Draw::kExtremes, Draw::kWide});
  const std::int64_t special = dice.one_in(2) ? dice.pick({2, 9}) : 0;
  const bool wild = dice.one_in(4), mostly_masked = dice.one_in(4);
  return make_op_problem(softmax(), params, [&](const TensorLayout& t) -> std::uint64_t {
    if (t.format == Format::kUint8) return dice.one_in(mostly_masked ? 6 : 2) ? 1 : 0;
    if (t.role == "mask") {
      if (wild && dice.one_in(6)) return dice.bits();
      return mostly_masked && !dice.one_in(6) ? 0xff800000U
                                              : encode(t.format, dice.pick({0.0, -1e30, 1e30, dice.real(-9, 9)}));
    }
    return special > 0 && dice.one_in(special) ? special_code(dice, t.format) : draw_code(dice, x, t.format);
  });
}

struct Tally {
  std::int64_t numbers = 0, escalated = 0, classes[32] = {};
};

/// Every element of `truth` against what it must be: the classes, and the value within the radius, which may be unknown
/// only in a row that is out of range.
void compare(const Truth& truth, const Outputs& expected, const Bound* bound, Tally& tally, const std::string& what) {
  for (const OutputTruth& out : truth.outputs) {
    const auto found = expected.find(out.layout.role);
    const std::size_t count = found == expected.end() ? 0 : found->second.size();
    ASSERT_EQ(out.mid.size(), count) << what << " " << out.layout.role;
    for (std::size_t i = 0; i < count; ++i) {
      const Expected& e = found->second[i];
      ASSERT_EQ(int{out.classes[i]}, int{e.classes}) << what << " " << out.layout.role << " " << i;
      ++tally.classes[e.classes];
      if (!(e.classes & kNumber)) continue;
      ++tally.numbers;
      if (!(out.radius[i] < kInf)) {
        ASSERT_TRUE(bound != nullptr && !bound->out_of_range[static_cast<std::size_t>(out.row[i])].empty())
            << what << " " << i;
        continue;
      }
      const Real error = mp::abs(e.value - Real(out.mid[i]));
      ASSERT_LE(error, Real(out.radius[i]) + mp::ldexp(mp::abs(e.value), -800))
          << what << " " << out.layout.role << " " << i;
    }
  }
}

TEST(Softmax, ReferenceAndFp64AgreeWithAnIndependentEvaluation) {
  Dice dice(41);
  Tally reference, fast;
  for (int i = 0; i < 2500; ++i) {
    const Problem problem = random_problem(dice);
    const Outputs expected = independent(problem);
    const std::string what = "case " + std::to_string(i) + text_of(problem.params);
    ASSERT_NO_FATAL_FAILURE(
        compare(softmax().reference(problem, 128), expected, nullptr, reference, what + " reference"));
    Arithmetic arithmetic;
    if (i % 2 == 1) arithmetic.scale_form = ScaleForm::kOnScore;  // stays in range where a folded scale does not
    const Evaluation evaluation = softmax().evaluate(problem, arithmetic, Level::kT0);
    ASSERT_NO_FATAL_FAILURE(compare(evaluation.truth, expected, &evaluation.bound, fast, what + " fp64"));
    for (const RowFacts& row : evaluation.truth.rows) fast.escalated += row.escalated;
  }
  EXPECT_GT(reference.numbers, 20000);
  EXPECT_GT(fast.escalated, 60);
  for (const int classes : {int{kZero}, int{kNan}, kNan | kZero, int{kPlusInf}, int{kMinusInf}, kNan | kPlusInf,
                            kNan | kNumber, kNan | kMinusInf, kNan | kMinusInf | kPlusInf})
    EXPECT_GT(reference.classes[classes], 0) << classes;
}

/// Worst share of the tolerance used, by kernel and output.
using Used = std::map<std::string, double>;

void run_kernels(const Problem& problem, const std::string& what, Used& used, std::int64_t& judged) {
  static const std::unique_ptr<Runner> runner = in_process_runner();
  for (const KernelIdentity& kernel : runner->kernels()) {
    if (kernel.op != "softmax") continue;
    const RunOutcome run = runner->run(kernel.name, problem.params, problem.inputs, problem.outputs);
    if (run.status == RunStatus::kSkipped) continue;
    ASSERT_EQ(run.status, RunStatus::kOk) << run.reason;
    for (const Arithmetic& declared : {run.declared, Arithmetic{}}) {
      const Measurement m = measure(softmax().evaluate(problem, declared, Level::kT0), run.outputs);
      for (const OutputMeasure& output : m.outputs) {
        const ElementReport& worst = output.worst;
        ASSERT_EQ(output.rejected, 0) << kernel.name << " " << what << " " << output.role << " at " << worst.at << ": "
                                      << worst.value << " for " << worst.mid << " tau " << worst.tau;
        if (declared == Arithmetic{}) continue;
        judged += output.judged - output.unconstrained;
        double& most = used[kernel.name.substr(0, kernel.name.rfind('_')) + " " + output.role];
        most = std::max(most, worst.used);
      }
    }
  }
}

TEST(Softmax, KernelsStayInsideTheBoundAndReachASixteenthOfIt) {
  Dice dice(42);
  Used used;
  std::int64_t judged = 0;
  for (int i = 0; i < 2000; ++i) {
    const Problem problem = random_problem(dice);
    ASSERT_NO_FATAL_FAILURE(run_kernels(problem, "case " + std::to_string(i) + text_of(problem.params), used, judged));
  }
  EXPECT_GT(judged, 25000);
  ASSERT_EQ(used.size(), 6U);
  // The maximum of an online row is exact, or carries one rounding: see the test of its steps.
  for (const auto& [name, most] : used) {
    if (name.ends_with(" m")) continue;
    EXPECT_GE(most, 1.0 / 16) << name;
  }
}

}  // namespace
}  // namespace assay
