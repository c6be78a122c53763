// Merge: what must hold between cases; and that the bound, its terms and planted faults agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases/materialize.h"
#include "kernels/runner.h"
#include "oracle/error.h"
#include "oracle/measure.h"
#include "tests/oracle/op_problems.h"

namespace assay {
namespace {

const Op& merge() { return op_named("merge"); }

Evaluation evaluate(const Problem& problem, const Arithmetic& arithmetic) {
  return merge().evaluate(problem, arithmetic, Level::kT0);
}

bool rejects(const Evaluation& e, std::size_t output, std::size_t i, double value) {
  return !accepted(e, output, i, encode(e.truth.outputs[output].layout.format, value));
}

/// Parts of one row of fp32 values, one channel.
struct Part {
  double lse, o;
};

Problem row_of(const std::vector<Part>& parts, const std::string& base = "e") {
  const Params p = make_params({{"parts", std::to_string(parts.size())},
                                {"dv", "1"},
                                {"dtype", "fp32"},
                                {"base", base},
                                {"empty_part", "either"}});
  std::size_t o = 0, lse = 0;
  return make_op_problem(merge(), p, [&](const TensorLayout& t) {
    return encode(Format::kFp32, t.role == "o_parts" ? parts[o++].o : parts[lse++].lse);
  });
}

Part merged(const std::vector<Part>& parts, const std::string& base = "e") {
  const Truth truth = merge().reference(row_of(parts, base), 128);
  return {truth.outputs[1].mid[0], truth.outputs[0].mid[0]};
}

double fp32(double x) { return static_cast<double>(static_cast<float>(x)); }

std::vector<Part> random_parts(Dice& dice, std::size_t n) {
  std::vector<Part> parts;
  for (std::size_t s = 0; s < n; ++s) parts.push_back({fp32(dice.real(-4, 4)), fp32(dice.real(-3, 3))});
  return parts;
}

TEST(MergeIdentity, OnePartIsItself) {
  for (const char* base : {"e", "2"}) {
    const Part part = merged({{3.25, -0.75}}, base);
    EXPECT_EQ(part.lse, 3.25);
    EXPECT_EQ(part.o, -0.75);
  }
}

TEST(MergeIdentity, EmptyPartsAnywhereChangeNothing) {
  Dice dice(1);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 30; ++i) {
    std::vector<Part> parts = random_parts(dice, 4);
    const Part before = merged(parts);
    for (const double lse : {-kInf, kInf})
      parts.insert(parts.begin() + dice.between(0, static_cast<std::int64_t>(parts.size())), {lse, 1e30});
    const Part after = merged(parts);
    EXPECT_EQ(before.lse, after.lse);
    EXPECT_EQ(before.o, after.o);
  }
}

TEST(MergeIdentity, OrderDoesNotMatterAndShiftingLsesMovesTheLse) {
  Dice dice(2);
  std::vector<Part> parts = random_parts(dice, 6);
  for (Part& part : parts) part.lse = std::round(part.lse * 64) / 64;
  const Part before = merged(parts);
  std::reverse(parts.begin(), parts.end());
  for (Part& part : parts) part.lse += 512;
  const Part after = merged(parts);
  EXPECT_NEAR(before.o, after.o, 1e-15);
  EXPECT_NEAR(before.lse + 512, after.lse, 1e-12);
}

TEST(MergeIdentity, MergingInGroupsIsMergingAtOnceUpToTheGroupsRounding) {
  Dice dice(3);
  for (int i = 0; i < 300; ++i) {
    const std::vector<Part> parts = random_parts(dice, 5);
    const Part whole = merged(parts), left = merged({parts[0], parts[1]}),
               right = merged({parts[2], parts[3], parts[4]});
    const Part rounded = merged({{fp32(left.lse), fp32(left.o)}, {fp32(right.lse), fp32(right.o)}});
    // d o = sum of weights times the parts' roundings, and weight changes of a quarter of the LSEs' at most; |o| <= 3,
    // |lse| <= 6.
    EXPECT_NEAR(rounded.o, whole.o, 3 * 0x1p-24 + 6 * (0.25 * 2 * 6 * 0x1p-24));
    EXPECT_NEAR(rounded.lse, whole.lse, 6 * 0x1p-24 * 1.01);
  }
}

TEST(MergeIdentity, TheBaseIsTheUnitOfTheLse) {
  Dice dice(4);
  std::vector<Part> two;
  double sum = 0, weighted = 0;
  for (const int lse : {3, -1, 0, 5, 5}) {
    two.push_back({static_cast<double>(lse), fp32(dice.real(-3, 3))});
    sum += std::ldexp(1.0, lse);
    weighted += std::ldexp(two.back().o, lse);
  }
  const Part exact = merged(two, "2");
  EXPECT_NEAR(exact.o, weighted / sum, 1e-15);
  EXPECT_NEAR(exact.lse, std::log2(sum), 1e-15);
  for (Part& part : two) part.lse = fp32(part.lse * std::log(2.0));
  const Part natural = merged(two);
  EXPECT_NEAR(natural.o, exact.o, 1e-6);
  EXPECT_NEAR(natural.lse, exact.lse * std::log(2.0), 1e-6);
}

TEST(MergeIdentity, PartialSoftmaxStatesMergeToTheWhole) {
  // LSEs of two halves of a softmax row, rounded to fp32, merge to the row's; o with v = 1 in one half and 0 in the
  // other is its weight.
  const Truth whole = op_named("softmax").reference(materialize(parse_case("softmax n=60 dtype=fp32 lse=e")), 128);
  std::vector<double> lse;
  Problem problem = materialize(parse_case("softmax n=60 dtype=fp32 lse=e mask=bool mask.data=all"));
  for (const bool first : {true, false}) {
    for (std::int64_t j = 0; j < 60; ++j)
      store_code(input(problem, "mask").bytes.data(), Format::kUint8, j, (j < 25) == first);
    lse.push_back(op_named("softmax").reference(problem, 128).outputs[1].mid[0]);
  }
  const Part both = merged({{fp32(lse[0]), 1}, {fp32(lse[1]), 0}});
  double weight = 0;
  for (std::size_t j = 0; j < 25; ++j) weight += whole.outputs[0].mid[j];
  EXPECT_NEAR(both.lse, whole.outputs[1].mid[0], 1e-6);
  EXPECT_NEAR(both.o, weight, 1e-6);
}

TEST(MergeBound, OneExactPartLeavesNoRoomInAChainAndLittleInASum) {
  Arithmetic chain;
  chain.normalize = Normalize::kEveryStep;
  chain.subnormals = Subnormals::kKept;
  const Evaluation e = evaluate(row_of({{3.25, -0.75}}), chain);
  EXPECT_FALSE(rejects(e, 0, 0, -0.75));
  EXPECT_TRUE(rejects(e, 0, 0, -0.75 - 0x1p-24));
  EXPECT_TRUE(rejects(e, 1, 0, 3.25 + 0x1p-22));
  EXPECT_LT(evaluate(row_of({{3.25, -0.75}}), {}).bound.outputs[0].tau[0], 3e-6);
}

TEST(MergeBound, IsRelativeToThePartsThatCancel) {
  const Evaluation e = evaluate(row_of({{1, 100}, {1.0001, -100}}), {});
  EXPECT_LT(std::abs(e.truth.outputs[0].mid[0]), 0.01);
  EXPECT_GT(e.bound.outputs[0].tau[0], 1e-6);
  EXPECT_LT(e.bound.outputs[0].tau[0], 1e-1);
}

TEST(MergeBound, NothingShrinksWhenAFieldBecomesUnknown) {
  const auto runner = in_process_runner();
  for (const char* line :
       {"merge parts=5 rows=3 dv=8", "merge parts=9 rows=2 dv=8 base=2 dtype=fp32 lse_parts=part_levels(2)@1",
        "merge parts=40 rows=2 dv=4 dtype=fp16 lse_parts=part_levels(-0.5,1)@1",
        "merge parts=4 rows=5 dv=4 lse_parts=part_holes(2)@2"}) {
    const Problem problem = materialize(parse_case(line));
    int compared = 0;
    for (const KernelIdentity& kernel : runner->kernels()) {
      if (kernel.op != "merge") continue;
      const RunOutcome run = runner->run(kernel.name, problem.params, problem.inputs, problem.outputs);
      if (run.status != RunStatus::kOk) continue;
      ++compared;
      const Bound narrow = evaluate(problem, run.declared).bound, wide = evaluate(problem, {}).bound;
      for (std::size_t k = 0; k < narrow.outputs.size(); ++k)
        for (std::size_t i = 0; i < narrow.outputs[k].tau.size(); ++i)
          ASSERT_LE(narrow.outputs[k].tau[i], wide.outputs[k].tau[i]) << kernel.name << " " << line << " " << k;
    }
    EXPECT_EQ(compared, 2) << line;
  }
}

TEST(MergeBound, TermsSumToTau) {
  Arithmetic sum;
  sum.normalize = Normalize::kDivide;
  for (const Arithmetic& arithmetic : {sum, Arithmetic{}})
    for (const char* line :
         {"merge parts=5 rows=3 dv=8", "merge parts=9 rows=2 dv=3 base=2 lse_parts=part_levels(2)@1"}) {
      const Problem problem = materialize(parse_case(line));
      const Bound bound = evaluate(problem, arithmetic).bound;
      const std::vector<BoundTerm> terms = merge().bound_terms(problem, arithmetic);
      for (std::size_t k = 0; k < bound.outputs.size(); ++k)
        for (std::size_t i = 0; i < bound.outputs[k].tau.size(); ++i) {
          double total = 0;
          for (std::size_t t = 0; t + 1 < terms.size(); ++t) total += terms[t].outputs[k][i];
          EXPECT_NEAR(total, bound.outputs[k].tau[i], 1e-9 * bound.outputs[k].tau[i]) << line << " " << k << " " << i;
        }
    }
}

TEST(MergeBound, PlantedFaultsOfSizeZeroAreTheTruthAndOfFullSizeAreSeen) {
  const Problem problem = materialize(parse_case("merge parts=4 rows=3 dv=5 dtype=fp32"));
  const Evaluation e = evaluate(problem, {});
  for (std::size_t fault = 0; fault < merge().planted_faults().size(); ++fault) {
    const PlantedOutputs none = merge().plant(problem, fault, 0), whole = merge().plant(problem, fault, 1);
    bool seen = false;
    for (std::size_t k = 0; k < none.size(); ++k)
      for (std::size_t i = 0; i < none[k].size(); ++i) {
        EXPECT_NEAR(none[k][i], e.truth.outputs[k].mid[i], 1e-12 * (1 + std::abs(none[k][i])))
            << fault << " " << k << " " << i;
        seen = seen || rejects(e, k, i, whole[k][i]);
      }
    EXPECT_TRUE(seen) << merge().planted_faults()[fault].name;
  }
  EXPECT_TRUE(merge().plant(materialize(parse_case("merge parts=1")), 0, 1).empty());
  EXPECT_EQ(merge().fault_site(row_of({{0, 1}, {5, 2}}), 0, 0).what, "part 1");
}

TEST(MergeBound, KnownWrongOutputsAreRejected) {
  const Problem problem = materialize(parse_case("merge parts=4 rows=3 dv=16 dtype=fp32"));
  for (const KnownWrong& wrong : merge().known_wrong(problem, evaluate(problem, {}))) {
    EXPECT_TRUE(wrong.applicable) << wrong.name;
    EXPECT_TRUE(wrong.rejected) << wrong.name;
  }
}

TEST(MergeDigits, AreCertifiedForBothOutputsAndEmptyForClasses) {
  const Problem problem = row_of({{2, 1}, {2, 3}});
  EXPECT_EQ(merge().digits(problem, 0, 0, 5), "2.0000");
  EXPECT_EQ(merge().digits(problem, 1, 0, 8), "2.6931472");
  EXPECT_EQ(merge().digits(materialize(parse_case("merge lse_parts=part_holes(1)")), 1, 0, 5), "");
}

TEST(MergeParams, AreCanonicalAndBadOnesNamed) {
  EXPECT_EQ(print_case(parse_case("merge base=e lse=yes parts=2 out=bf16 layout=parts")),
            "merge o_parts=normal@1 lse_parts=normal@2");
  EXPECT_EQ(print_case(parse_case("merge dtype=fp32 base=2 layout=rows pad=3")),
            "merge dtype=fp32 base=2 layout=rows pad=3 o_parts=normal@1 lse_parts=normal@2");
  for (const char* text : {"parts=-1", "empty=mean", "base=10", "lse=e", "dtype=e4m3", "dv=0"}) {
    try {
      parse_case("merge " + std::string(text));
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
