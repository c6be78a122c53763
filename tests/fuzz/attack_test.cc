// Mutated cases are legal, and the search climbs, repeats itself and reports what a fresh measurement confirms.
#include "fuzz/attack.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cases/materialize.h"
#include "cases/random.h"
#include "fuzz/mutate.h"
#include "kernels/runner.h"
#include "oracle/error.h"

namespace assay {
namespace {

TEST(Mutation, GivesLegalCasesWithinTheLimitsThatDiffer) {
  const MutationLimits limits{.elements = 20000, .overrides = 10};
  const Stream stream{7};
  std::int64_t drawn = 0;
  const Choose choose = [&](std::size_t n) {
    return static_cast<std::size_t>(below(stream.bits(drawn++), static_cast<std::int64_t>(n)));
  };
  const Case other = parse_case("attention sq=3 skv=65 mask=bool k=rising(1,16)@4 v=ones lse=2 dtype=fp16");
  Case c = parse_case("attention sq=2 skv=9 d=16 mask=causal+additive");
  std::set<std::string> seen;
  std::size_t longest = 0;
  for (int i = 0; i < 600; ++i) {
    const std::optional<Case> next = mutated(c, other, choose, limits);
    if (!next) continue;
    EXPECT_NE(print_case(*next), print_case(c));
    EXPECT_TRUE(parse_case(print_case(*next)) == *next) << print_case(*next);
    std::int64_t elements = 0;
    const Problem problem = materialize(*next);
    for (const Tensor& t : problem.inputs) elements += t.layout.storage;
    EXPECT_LE(elements, limits.elements);
    EXPECT_LE(next->overrides.size(), limits.overrides);
    longest = std::max(longest, next->overrides.size());
    seen.insert(print_case(*next));
    c = *next;
  }
  EXPECT_GT(seen.size(), 200U);
  EXPECT_GT(longest, 1U) << "single values were mutated too";
}

TEST(Mutation, DropsWhatNoLongerFits) {
  Case c = parse_case("attention sq=2 skv=9 mask=bool set=k[0,0,8,0]:1 set=k[0,0,1,0]:2");
  c.params.erase("mask");
  c.params.set("skv", "5");
  const std::optional<Case> legal = legal_case(c, {});
  ASSERT_TRUE(legal.has_value());
  EXPECT_EQ(legal->overrides.size(), 1U);
  EXPECT_EQ(legal->sources.size(), 3U);
  EXPECT_FALSE(legal_case(c, {.elements = 10, .overrides = 10}).has_value());
  c.params.set("hq", "0");
  EXPECT_FALSE(legal_case(c, {}).has_value());
}

TEST(Attack, ClimbsAndRepeatsItself) {
  AttackOptions options;
  options.kernels = {"naive_fp32"};
  options.suites = {"smoke"};
  options.evaluations = 100;
  const AttackResult first = attack(options, [](const AttackResult&) {});
  EXPECT_EQ(first.evaluations, options.evaluations);
  EXPECT_EQ(first.rejected_cases, 0);
  ASSERT_EQ(first.peaks.empty(), false);
  for (const AttackPeak& peak : first.peaks) {
    ASSERT_FALSE(peak.curve.empty());
    for (std::size_t i = 1; i < peak.curve.size(); ++i) EXPECT_GT(peak.curve[i].used, peak.curve[i - 1].used);
    EXPECT_EQ(peak.curve.back().used, peak.element.used);
    EXPECT_LE(peak.element.used, 1);
  }
  EXPECT_GT(first.peaks.front().curve.size(), 2U) << "no progress in " << options.evaluations << " runs";
  const AttackResult second = attack(options, [](const AttackResult&) {});
  ASSERT_EQ(second.peaks.size(), first.peaks.size());
  for (std::size_t i = 0; i < first.peaks.size(); ++i) EXPECT_EQ(second.peaks[i].case_line, first.peaks[i].case_line);

  // A fresh run of a reported case shows the same share, and a search that starts from it does not lose it.
  const AttackPeak& peak = first.peaks.front();
  options.starts = {parse_case(peak.case_line)};
  options.evaluations = 1;
  const AttackResult again = attack(options, [](const AttackResult&) {});
  ASSERT_FALSE(again.peaks.empty());
  EXPECT_EQ(again.peaks.front().element.used, peak.element.used);
  EXPECT_EQ(again.peaks.front().case_line, peak.case_line);
}

TEST(Attack, NamesWhatItDoesNotKnow) {
  AttackOptions options;
  options.evaluations = 1;
  options.kernels = {"no_such_kernel"};
  EXPECT_THROW(attack(options, [](const AttackResult&) {}), InputError);
  options.op = "no_such_op";
  EXPECT_THROW(attack(options, [](const AttackResult&) {}), InputError);
}

}  // namespace
}  // namespace assay
