// Softmax: what must hold between cases, step by step and in parts; and that the bound, its terms and planted faults
// agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cases/materialize.h"
#include "kernels/runner.h"
#include "oracle/error.h"
#include "oracle/measure.h"
#include "tests/oracle/op_problems.h"

namespace assay {
namespace {

const Op& softmax() { return op_named("softmax"); }

struct Answer {
  std::vector<double> y, lse, m, l;
};

/// The reference, by output role.
Answer answer(const Problem& problem) {
  const Truth truth = softmax().reference(problem, 128);
  Answer out;
  for (const OutputTruth& t : truth.outputs)
    (t.layout.role == "y" ? out.y : t.layout.role == "lse" ? out.lse : t.layout.role == "m" ? out.m : out.l) = t.mid;
  return out;
}

/// One row of fp32 values.
Problem row_of(const std::vector<double>& x, const std::string& params = "") {
  Params p = make_params({{"n", std::to_string(x.size())}, {"dtype", "fp32"}, {"lse", "e"}});
  std::size_t begin = 0;
  while (begin < params.size()) {
    const std::size_t end = std::min(params.find(' ', begin), params.size()), equals = params.find('=', begin);
    p.set(params.substr(begin, equals - begin), params.substr(equals + 1, end - equals - 1));
    begin = end + 1;
  }
  std::size_t next = 0;
  return make_op_problem(softmax(), p,
                         [&](const TensorLayout&) { return encode(Format::kFp32, x[next++ % x.size()]); });
}

std::vector<double> random_integers(Dice& dice, std::size_t n) {
  std::vector<double> x;
  for (std::size_t j = 0; j < n; ++j) x.push_back(static_cast<double>(dice.between(-9, 9)));
  return x;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double offset = 0) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i] + offset, b[i], 1e-14 * (1 + std::abs(b[i]))) << i;
}

TEST(SoftmaxIdentity, AddingAConstantMovesMaximaAndLseOnly) {
  Dice dice(1);
  for (int i = 0; i < 50; ++i) {
    std::vector<double> x = random_integers(dice, 23);
    const Answer before = answer(row_of(x, "steps=4"));
    for (double& value : x) value += 1024;
    const Answer after = answer(row_of(x, "steps=4"));
    expect_near(before.y, after.y);
    expect_near(before.l, after.l);
    expect_near(before.m, after.m, 1024);
    expect_near(before.lse, after.lse, 1024);
  }
}

TEST(SoftmaxIdentity, ThePermutedRowHasThePermutedAnswer) {
  Dice dice(2);
  std::vector<double> x = random_integers(dice, 40);
  const Answer before = answer(row_of(x));
  std::reverse(x.begin(), x.end());
  Answer after = answer(row_of(x));
  std::reverse(after.y.begin(), after.y.end());
  expect_near(before.y, after.y);
  expect_near(before.lse, after.lse);
}

TEST(SoftmaxIdentity, AnyStepsEndInTheSameState) {
  Dice dice(3);
  const std::vector<double> x = random_integers(dice, 30);
  for (const int steps : {1, 4, 7, 29, 30, 64}) {
    const Answer a = answer(row_of(x, "steps=" + std::to_string(steps)));
    ASSERT_EQ(a.m.size(), static_cast<std::size_t>((30 + steps - 1) / steps));
    EXPECT_NEAR(a.m.back() + std::log(a.l.back()), a.lse[0], 1e-14);
    for (std::size_t s = 0; s < a.m.size(); ++s) {
      const std::vector<double> prefix(
          x.begin(), x.begin() + std::min<std::ptrdiff_t>(30, static_cast<std::ptrdiff_t>(s + 1) * steps));
      EXPECT_EQ(a.m[s], *std::max_element(prefix.begin(), prefix.end()));
      EXPECT_NEAR(a.m[s] + std::log(a.l[s]), answer(row_of(prefix)).lse[0], 1e-14);
    }
  }
}

TEST(SoftmaxIdentity, ScaleMaskAndBaseAreWhatTheySay) {
  Dice dice(4);
  std::vector<double> x = random_integers(dice, 20);
  const Answer scaled = answer(row_of(x, "scale=-0.25")), two = answer(row_of(x, "scale=-0.25 lse=2"));
  EXPECT_NEAR(two.lse[0] * std::log(2.0), scaled.lse[0], 1e-13);
  for (double& value : x) value *= -0.25;
  expect_near(answer(row_of(x)).y, scaled.y);
  // An excluded key, one at -inf, and a shorter row are the same.
  Problem masked = row_of(x, "mask=bool"), biased = row_of(x, "mask=additive");
  for (std::int64_t j = 0; j < 20; ++j) {
    store_code(input(masked, "mask").bytes.data(), Format::kUint8, j, j < 13);
    store_code(input(biased, "mask").bytes.data(), Format::kFp32, j, j < 13 ? 0 : 0xff800000U);
  }
  const Answer a = answer(masked), b = answer(biased), c = answer(row_of({x.begin(), x.begin() + 13}));
  expect_near(a.y, b.y);
  expect_near(a.lse, c.lse);
  for (std::size_t j = 0; j < 20; ++j) EXPECT_NEAR(a.y[j], j < 13 ? c.y[j] : 0, 1e-15);
}

TEST(SoftmaxIdentity, YSumsToOne) {
  Dice dice(5);
  for (int i = 0; i < 100; ++i) {
    std::vector<double> x;
    for (int j = 0; j < 60; ++j) x.push_back(dice.real(-80, 80));
    for (double& value : x) value = static_cast<double>(static_cast<float>(value));
    const Answer a = answer(row_of(x));
    EXPECT_NEAR(std::accumulate(a.y.begin(), a.y.end(), 0.0), 1, 1e-13);
  }
}

Evaluation evaluate(const Problem& problem, const Arithmetic& arithmetic) {
  return softmax().evaluate(problem, arithmetic, Level::kT0);
}

bool rejects(const Evaluation& e, std::size_t output, std::size_t i, double value) {
  return !accepted(e, output, i, encode(e.truth.outputs[output].layout.format, value));
}

TEST(SoftmaxBound, AForgottenRescalingIsCaughtAtTheStepWhereItHappens) {
  const Problem problem =
      materialize(parse_case("softmax n=40 dtype=fp32 out=fp32 steps=8 set=x[0,17]:6 x=small_integers(1)@3"));
  const Evaluation e = evaluate(problem, {});
  const PlantedOutputs wrong = softmax().plant(problem, 5, 1);
  ASSERT_EQ(softmax().planted_faults()[5].name, "stale sum");
  ASSERT_EQ(wrong.size(), 3U);
  for (std::size_t s = 0; s < 5; ++s)
    EXPECT_EQ(rejects(e, 2, s, wrong[2][s]), s >= 2) << s;  // the maximum rises in step 2
  for (std::size_t s = 0; s < 5; ++s) EXPECT_FALSE(rejects(e, 1, s, wrong[1][s])) << s;
}

TEST(SoftmaxBound, AMaximumIsExactUpToTheRoundingOfTheLogit) {
  const Problem plain = materialize(parse_case("softmax n=100 dtype=fp32 scale=0.3 steps=10"));
  Arithmetic on_score;
  on_score.scale_form = ScaleForm::kOnScore;
  const Evaluation e = evaluate(plain, on_score), any = evaluate(plain, {});
  for (std::size_t s = 0; s < 10; ++s) {
    const double m = e.truth.outputs[1].mid[s], rounded = round_to(Format::kFp32, m), step = ulp(Format::kFp32, m);
    EXPECT_FALSE(rejects(e, 1, s, rounded));
    EXPECT_TRUE(rejects(e, 1, s, rounded + step) && rejects(e, 1, s, rounded - step)) << s;
    EXPECT_FALSE(rejects(any, 1, s, rounded + step)) << s;
    EXPECT_TRUE(rejects(any, 1, s, rounded + 6 * step)) << s;
  }
}

TEST(SoftmaxBound, NothingShrinksWhenAFieldBecomesUnknown) {
  const auto runner = in_process_runner();
  for (const char* line :
       {"softmax rows=3 n=150 lse=e", "softmax rows=2 n=300 steps=32 lse=2 x=score_rising(2,32)@1 dtype=fp32",
        "softmax rows=2 n=90 dtype=fp16 mask=additive mask.data=bias(2)@4 steps=16 lse=e",
        "softmax rows=2 n=40 x=subnormal@3 scale=-1"}) {
    const Case c = parse_case(line);
    const Problem problem = materialize(c);
    int compared = 0;
    for (const KernelIdentity& kernel : runner->kernels()) {
      if (kernel.op != "softmax") continue;
      const RunOutcome run = runner->run(kernel.name, problem.params, problem.inputs, problem.outputs);
      if (run.status != RunStatus::kOk) continue;
      ++compared;
      const Bound narrow = evaluate(problem, run.declared).bound, wide = evaluate(problem, {}).bound;
      for (std::size_t k = 0; k < narrow.outputs.size(); ++k)
        for (std::size_t i = 0; i < narrow.outputs[k].tau.size(); ++i)
          ASSERT_LE(narrow.outputs[k].tau[i], wide.outputs[k].tau[i]) << kernel.name << " " << line << " " << k;
    }
    EXPECT_GT(compared, 0) << line;
  }
}

TEST(SoftmaxBound, TermsSumToTau) {
  Dice dice(6);
  for (const char* line : {"softmax rows=3 n=150 lse=e steps=16", "softmax rows=2 n=90 dtype=fp16 mask=additive lse=2",
                           "softmax rows=4 n=12 mask=bool mask.data=empty_rows(2) empty=mean"}) {
    const Problem problem = materialize(parse_case(line));
    const Bound bound = evaluate(problem, {}).bound;
    const std::vector<BoundTerm> terms = softmax().bound_terms(problem, {});
    ASSERT_EQ(terms.back().name, "output");
    for (std::size_t k = 0; k < bound.outputs.size(); ++k)
      for (std::size_t i = 0; i < bound.outputs[k].tau.size(); ++i) {
        double sum = 0;
        for (std::size_t t = 0; t + 1 < terms.size(); ++t) sum += terms[t].outputs[k][i];
        EXPECT_NEAR(sum, bound.outputs[k].tau[i], 1e-9 * bound.outputs[k].tau[i]) << line << " " << k << " " << i;
      }
  }
}

TEST(SoftmaxBound, PlantedFaultsOfSizeZeroAreTheTruthAndOfFullSizeAreSeen) {
  const Problem problem =
      materialize(parse_case("softmax rows=3 n=200 dtype=fp32 steps=64 lse=e x=score_rising(1,64)@2"));
  const Evaluation e = evaluate(problem, {});
  for (std::size_t fault = 0; fault < softmax().planted_faults().size(); ++fault) {
    const PlantedOutputs none = softmax().plant(problem, fault, 0), whole = softmax().plant(problem, fault, 1);
    bool seen = false;
    for (std::size_t k = 0; k < none.size(); ++k)
      for (std::size_t i = 0; i < none[k].size(); ++i) {
        EXPECT_NEAR(none[k][i], e.truth.outputs[k].mid[i], 1e-12 * (1 + std::abs(none[k][i])))
            << fault << " " << k << " " << i;
        seen = seen || rejects(e, k, i, whole[k][i]);
      }
    EXPECT_TRUE(seen) << softmax().planted_faults()[fault].name;
    EXPECT_FALSE(softmax().fault_site(problem, fault, 1).what.empty());
  }
  EXPECT_TRUE(softmax().plant(materialize(parse_case("softmax n=1")), 0, 1).empty());
}

TEST(SoftmaxBound, KnownWrongOutputsAreRejected) {
  const Problem problem = materialize(parse_case("softmax rows=4 n=200 dtype=fp32 lse=e x=score_rising(1,64)@2"));
  for (const KnownWrong& wrong : softmax().known_wrong(problem, evaluate(problem, {}))) {
    EXPECT_TRUE(wrong.applicable) << wrong.name;
    EXPECT_TRUE(wrong.rejected) << wrong.name;
  }
}

TEST(SoftmaxDigits, AreCertifiedForEveryOutputAndEmptyForClasses) {
  const Problem problem = row_of({0, 0, 0, 0}, "steps=3");
  EXPECT_EQ(softmax().digits(problem, 0, 2, 5), "0.25000");
  EXPECT_EQ(softmax().digits(problem, 1, 0, 8), "1.3862944");
  EXPECT_EQ(softmax().digits(problem, 3, 0, 5), "3.0000");
  EXPECT_EQ(softmax().digits(materialize(parse_case("softmax n=3 set=x[0,1]:nan")), 0, 0, 5), "");
}

TEST(SoftmaxParams, AreCanonicalAndBadOnesNamed) {
  EXPECT_EQ(print_case(parse_case("softmax steps=0 n=64 out=bf16 scale=1.0 rows=2 mask=none")),
            "softmax rows=2 x=normal@1");
  EXPECT_EQ(print_case(parse_case("softmax dtype=fp16 out=fp32 lse=2")),
            "softmax dtype=fp16 out=fp32 lse=2 x=normal@1");
  for (const auto& [text, key] : {std::pair{"n=-1", "n=-1"},
                                  {"scale=inf", "scale=inf"},
                                  {"mask=causal", "mask=causal"},
                                  {"steps=x", "steps=x"},
                                  {"dtype=e4m3", "dtype=e4m3"},
                                  {"rows=16777216 n=16777216", "rows=16777216"}}) {
    try {
      parse_case("softmax " + std::string(text));
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
