// Merge: the ball reference and the fp64 truth against an independent MPFR evaluation; correct kernels against the
// bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <map>

#include "kernels/runner.h"
#include "oracle/measure.h"
#include "oracle/ops/merge/merge.h"
#include "tests/oracle/op_problems.h"

namespace assay {
namespace {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::mpfr_float_backend<301>, mp::et_off>;

constexpr double kInf = std::numeric_limits<double>::infinity();

const Op& merge() { return op_named("merge"); }

const Tensor& input_of(const Problem& problem, std::string_view role) {
  for (const Tensor& t : problem.inputs)
    if (t.layout.role == role) return t;
  throw std::out_of_range("no such input");
}

double lse_part(const Problem& problem, std::int64_t part, std::int64_t row) {
  const Tensor& t = input_of(problem, "lse_parts");
  return decode(t.layout.format,
                load_code(t.bytes.data(), t.layout.format, part * t.layout.strides[0] + row * t.layout.strides[1]));
}

double o_part(const Problem& problem, std::int64_t part, std::int64_t row, std::int64_t c) {
  const Tensor& t = input_of(problem, "o_parts");
  const std::int64_t at = part * t.layout.strides[0] + row * t.layout.strides[1] + c * t.layout.strides[2];
  return decode(t.layout.format, load_code(t.bytes.data(), t.layout.format, at));
}

/// What one output element must be. `scale`: the sum of magnitudes behind the value, whose 900th bit is its error.
struct Expected {
  ClassSet classes = 0;
  Real value = 0, scale = 0;
};

struct Outputs {
  std::vector<Expected> o, lse;
};

/// The definition in merge.h, in MPFR, with the class rules written down a second time.
Outputs independent(const Problem& problem) {
  const MergeParams p = merge_params(problem.params);
  const Real log_base = p.base == LseBase::kTwo ? mp::log(Real(2)) : Real(1);
  Outputs out;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    std::vector<std::int64_t> full, empty;
    bool nan = false, plus = false;
    for (std::int64_t s = 0; s < p.parts; ++s) {
      const double lse = lse_part(problem, s, row);
      if (lse == -kInf || (lse == kInf && p.plus_inf_is_empty))
        empty.push_back(s);
      else
        full.push_back(s), nan = nan || lse != lse, plus = plus || lse == kInf;
    }
    Real sum = 0, largest = 0;  // weights relative to it
    std::vector<Real> weights;
    if (!nan && !plus && !full.empty()) {
      largest = Real(lse_part(problem, full.back(), row));
      for (std::int64_t s : full) largest = std::max(largest, Real(lse_part(problem, s, row)));
      for (std::int64_t s : full) weights.push_back(mp::exp((Real(lse_part(problem, s, row)) - largest) * log_base));
      for (const Real& w : weights) sum += w;
    }
    Expected lse;
    if (nan)
      lse.classes = kNan;
    else if (plus)
      lse.classes = kNan | kPlusInf;
    else if (full.empty())
      lse.classes = p.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf;
    else
      lse = {kNumber, largest + mp::log(sum) / log_base, 1};
    if (p.has_lse) out.lse.push_back(lse);
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
      Expected o;
      bool o_nan = false, o_plus = false, o_minus = false, o_nonzero = false, stray = false;
      for (std::int64_t s : empty) stray = stray || !std::isfinite(o_part(problem, s, row, c));
      for (std::size_t i = 0; i < full.size(); ++i) {
        const double v = o_part(problem, full[i], row, c);
        o_nan = o_nan || v != v, o_plus = o_plus || v == kInf, o_minus = o_minus || v == -kInf,
        o_nonzero = o_nonzero || v != 0;
        if (nan || plus || !std::isfinite(v)) continue;
        o.value += weights[i] * Real(v);
        o.scale += weights[i] * mp::abs(Real(v));
      }
      if (nan || plus)
        o.classes = kNan;
      else if (full.empty())
        o.classes = p.empty_output == EmptyOutput::kNan ? kNan : kZero;
      else if (o_nan || (o_plus && o_minus))
        o.classes = kNan;
      else if (o_plus || o_minus)
        o.classes = o_plus ? kPlusInf : kMinusInf;
      else
        o.classes = o_nonzero ? kNumber : kZero;
      if (stray && p.masked_nonfinite == MaskedNonfinite::kPropagates) o.classes |= kNan;
      if (sum > 0) o.value /= sum, o.scale /= sum;
      out.o.push_back(o);
    }
  }
  return out;
}

Params random_params(Dice& dice) {
  Params p;
  p.set("parts", std::to_string(dice.one_in(10) ? 0 : dice.between(1, 9)));
  p.set("rows", std::to_string(dice.between(0, 4)));
  p.set("dv", std::to_string(dice.between(1, 6)));
  p.set("dtype", dice.pick({"fp32", "fp16", "bf16"}));
  if (dice.one_in(2)) p.set("out", dice.pick({"fp32", "fp16", "bf16"}));
  p.set("base", dice.pick({"e", "2"}));
  p.set("lse", dice.pick({"yes", "yes", "no"}));
  p.set("empty_part", dice.pick({"-inf", "either"}));
  p.set("empty", dice.pick({"zero", "nan"}));
  p.set("empty_lse", dice.pick({"-inf", "inf"}));
  p.set("masked_nonfinite", dice.pick({"ignored", "propagates"}));
  p.set("layout", dice.pick({"parts", "rows"}));
  p.set("pad", std::to_string(dice.between(0, 2)));
  return p;
}

Problem random_problem(Dice& dice) {
  const Params params = random_params(dice);
  const Draw o = dice.pick({Draw::kRawBits, Draw::kModerate, Draw::kModerate, Draw::kSmallIntegers, Draw::kExtremes});
  const int lse_style = static_cast<int>(dice.between(0, 5));
  const std::int64_t special = dice.one_in(3) ? 8 : 0;
  return make_op_problem(merge(), params, [&](const TensorLayout& t) -> std::uint64_t {
    if (t.role != "lse_parts")
      return special > 0 && dice.one_in(special) ? special_code(dice, t.format) : draw_code(dice, o, t.format);
    if (dice.one_in(4))
      return encode(t.format, dice.pick({-kInf, -kInf, -kInf, lse_style == 5 ? kInf - kInf : -kInf, kInf}));
    if (lse_style == 4) return draw_code(dice, dice.pick({Draw::kRawBits, Draw::kExtremes}), t.format);
    const double scale = lse_style == 0 ? 1 : lse_style == 1 ? 20 : lse_style == 2 ? 1000 : 1e5;
    return encode(t.format, dice.real(-scale, scale));
  });
}

struct Tally {
  std::int64_t numbers = 0, classes[32] = {};
};

void compare(const Truth& truth, const Outputs& expected, const Bound* bound, Tally& tally, const std::string& what) {
  for (std::size_t k = 0; k < truth.outputs.size(); ++k) {
    const OutputTruth& out = truth.outputs[k];
    const std::vector<Expected>& all = k == 0 ? expected.o : expected.lse;
    ASSERT_EQ(out.mid.size(), all.size()) << what;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(int{out.classes[i]}, int{all[i].classes}) << what << " " << out.layout.role << " " << i;
      ++tally.classes[all[i].classes];
      if (!(all[i].classes & kNumber)) continue;
      ++tally.numbers;
      if (!(out.radius[i] < kInf)) {
        ASSERT_TRUE(bound != nullptr && !bound->out_of_range[static_cast<std::size_t>(out.row[i])].empty())
            << what << " " << i;
        continue;
      }
      ASSERT_LE(mp::abs(all[i].value - Real(out.mid[i])), Real(out.radius[i]) + mp::ldexp(all[i].scale, -800))
          << what << " " << out.layout.role << " " << i;
    }
  }
}

TEST(Merge, ReferenceAndFp64AgreeWithAnIndependentEvaluation) {
  Dice dice(51);
  Tally reference, fast;
  for (int i = 0; i < 2500; ++i) {
    const Problem problem = random_problem(dice);
    const Outputs expected = independent(problem);
    const std::string what = "case " + std::to_string(i) + text_of(problem.params);
    ASSERT_NO_FATAL_FAILURE(
        compare(merge().reference(problem, 128), expected, nullptr, reference, what + " reference"));
    const Evaluation evaluation = merge().evaluate(problem, {}, Level::kT0);
    ASSERT_NO_FATAL_FAILURE(compare(evaluation.truth, expected, &evaluation.bound, fast, what + " fp64"));
  }
  EXPECT_GT(reference.numbers, 10000);
  for (const int classes : {int{kZero}, int{kNan}, kNan | kZero, int{kPlusInf}, int{kMinusInf}, kNan | kPlusInf,
                            kNan | kNumber, kNan | kMinusInf})
    EXPECT_GT(reference.classes[classes], 0) << classes;
}

/// Worst share of the tolerance used, by kernel and output.
using Used = std::map<std::string, double>;

void run_kernels(const Problem& problem, const std::string& what, Used& used, std::int64_t& judged) {
  static const std::unique_ptr<Runner> runner = in_process_runner();
  for (const KernelIdentity& kernel : runner->kernels()) {
    if (kernel.op != "merge") continue;
    const RunOutcome run = runner->run(kernel.name, problem.params, problem.inputs, problem.outputs);
    if (run.status == RunStatus::kSkipped) continue;
    ASSERT_EQ(run.status, RunStatus::kOk) << run.reason;
    for (const Arithmetic& declared : {run.declared, Arithmetic{}}) {
      const Measurement m = measure(merge().evaluate(problem, declared, Level::kT0), run.outputs);
      for (const OutputMeasure& output : m.outputs) {
        const ElementReport& worst = output.worst;
        ASSERT_EQ(output.rejected, 0) << kernel.name << " " << what << " " << output.role << " at " << worst.at << ": "
                                      << worst.value << " for " << worst.mid << " tau " << worst.tau << " "
                                      << worst.error / worst.tau;
        if (declared == Arithmetic{}) continue;
        judged += output.judged - output.unconstrained;
        double& most = used[kernel.name.substr(0, kernel.name.rfind('_')) + " " + output.role];
        most = std::max(most, worst.used);
      }
    }
  }
}

TEST(Merge, KernelsStayInsideTheBoundAndReachASixteenthOfIt) {
  Dice dice(52);
  Used used;
  std::int64_t judged = 0;
  for (int i = 0; i < 2000; ++i) {
    const Problem problem = random_problem(dice);
    ASSERT_NO_FATAL_FAILURE(run_kernels(problem, "case " + std::to_string(i) + text_of(problem.params), used, judged));
  }
  EXPECT_GT(judged, 10000);
  ASSERT_EQ(used.size(), 4U);
  for (const auto& [name, most] : used) EXPECT_GE(most, 1.0 / 16) << name;
}

}  // namespace
}  // namespace assay
