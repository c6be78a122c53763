// The minimiser: smaller by every step, the same failure, a fixed point, the same result again, for every op.
#include "fuzz/minimize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "fuzz/case_size.h"
#include "fuzz/finding_store.h"
#include "fuzz/shrink_steps.h"
#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::unique_ptr<Runner> mutants() {
  return worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
}

TEST(CaseSize, CountsElementsFirstThenOptionsValuesOverridesAndText) {
  const auto size = [](const std::string& line) { return case_size(parse_case(line)); };
  const std::string one = "attention d=1 q=ones k=ones v=ones";
  EXPECT_EQ(size(one).elements, 5) << "q, k, v, o and lse";
  EXPECT_EQ(size(one).values, 3);
  EXPECT_LT(size(one), size("attention d=2 q=constant k=constant v=constant"));
  EXPECT_LT(size(one), size("attention d=1 out=fp32 q=constant k=constant v=constant"));
  EXPECT_LT(size("attention d=1 q=normal@1 set=q[0,0,0,0]:0"), size("attention d=1 q=normal@1"));
  EXPECT_LT(size("attention d=1 q=normal@1"), size("attention d=1 q=normal@1 set=q[0,0,0,0]:nan"));
  EXPECT_LT(size(one), size("attention d=1 q=ones k=ones v=ones set=q[0,0,0,0]:1"));
  EXPECT_LT(size(one), size("attention d=1 q=ones k=ones v=ones poison=max"));
  EXPECT_LT(value_size(0), value_size(1));
  EXPECT_LT(value_size(1), value_size(2));
  EXPECT_LT(value_size(2), value_size(3));
  EXPECT_LT(value_size(2), value_size(-2));
  EXPECT_LT(value_size(2), value_size(0x1p60));
  EXPECT_LT(value_size(1.5), value_size(1.0 / 3));
}

TEST(ShrinkSteps, AreLegalDistinctSmallerAndLeaveNoParameterWithoutMeaning) {
  const Case c = parse_case(
      "attention b=2 hq=4 hkv=2 sq=3 skv=70 d=16 dtype=fp16 mask=causal+block block=32,16 softcap=0.3 kv=nhd page=32 "
      "page_seed=3 table_pad=huge kv_lens=70,37 q=normal(3)@7 v=uniform(-2,2)@3 set=v[0,1,0,2]:nan set=q[0,0,2,1]:7 "
      "poison=max");
  std::set<std::string> lines;
  for (std::size_t kind = 0; kind < kShrinkKinds; ++kind) {
    const std::vector<Case> steps = shrink_steps(c, static_cast<ShrinkKind>(kind));
    EXPECT_FALSE(steps.empty()) << kind;
    for (const Case& next : steps) {
      const std::string line = print_case(next);
      EXPECT_TRUE(parse_case(line) == next) << line;
      EXPECT_LT(case_size(next), case_size(c)) << line;
      lines.insert(line);
    }
  }
  const auto some = [&](const std::function<bool(const Case&)>& is) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return is(parse_case(line)); });
  };
  const auto has = [](const Case& next, const char* key, const std::string& value) {
    const std::string* text = next.params.find(key);
    return text != nullptr && *text == value;
  };
  EXPECT_TRUE(some([&](const Case& n) { return n.params.find("kv") == nullptr && n.params.find("page") == nullptr; }));
  EXPECT_TRUE(some([&](const Case& n) { return has(n, "mask", "causal") && n.params.find("block") == nullptr; }));
  EXPECT_TRUE(some([&](const Case& n) { return has(n, "hq", "2") && has(n, "hkv", "1"); })) << "their ratio stays";
  EXPECT_TRUE(some([&](const Case& n) { return n.params.find("b") == nullptr && has(n, "skv", "70"); }));
  EXPECT_TRUE(some([&](const Case& n) { return has(n, "skv", "32") && n.params.find("kv_lens") == nullptr; }))
      << "lengths follow";
  EXPECT_TRUE(some([&](const Case& n) { return has(n, "kv_lens", "70,1"); }));
  EXPECT_TRUE(some([&](const Case& n) { return has(n, "softcap", "1"); }));
  EXPECT_TRUE(some([&](const Case& n) { return n.overrides.empty(); }));
  EXPECT_TRUE(some([&](const Case& n) { return n.overrides.size() == 1 && n.overrides[0].role == "v"; }));
  EXPECT_TRUE(some([&](const Case& n) { return n.poison == Poison::kNan; }));
}

TEST(Minimizer, EndsAtAFixedPointWithTheSameFailureAndAgainAtTheSame) {
  const std::unique_ptr<Runner> runner = mutants();
  const Case c = parse_case(
      "attention b=2 hq=4 hkv=2 sq=9 skv=150 d=32 mask=causal out=fp32 q=normal(2)@71 k=normal@72 v=normal@73 "
      "set=q[0,0,0,0]:1.5 set=k[1,1,9,9]:-3");
  const Minimized found = minimize(c, "fa2_bf16_last_key_dropped", *runner);
  EXPECT_TRUE(found.minimal);
  EXPECT_EQ(found.signature.mode, "dropped_keys");
  EXPECT_EQ(found.record.case_line, print_case(found.smallest));
  EXPECT_EQ(print_case(found.smallest), "attention skv=2 d=1 q=constant k=constant v=constant")
      << "no element, option or value is needed beside the key that is lost";
  EXPECT_TRUE(is_minimal(found.smallest, "fa2_bf16_last_key_dropped", *runner));
  EXPECT_FALSE(is_minimal(c, "fa2_bf16_last_key_dropped", *runner));
  const Minimized again = minimize(c, "fa2_bf16_last_key_dropped", *runner);
  EXPECT_EQ(print_case(again.smallest), print_case(found.smallest));
  EXPECT_EQ(again.runs, found.runs);
}

TEST(Minimizer, KeepsWhatTheFailureNeeds) {
  const std::unique_ptr<Runner> runner = mutants();
  const auto minimal = [&](const std::string& line, const std::string& kernel) {
    const Minimized found = minimize(parse_case(line), kernel, *runner);
    EXPECT_TRUE(found.minimal) << kernel;
    return found;
  };
  const std::string normal = " q=normal@1 k=normal@2 v=normal@3";
  const Minimized value =
      minimal("attention sq=4 skv=20 d=16 dtype=fp16 set=q[0,0,2,1]:nan set=v[0,0,9,1]:3", "naive_fp16_output_clamped");
  ASSERT_EQ(value.smallest.overrides.size(), 1U);
  EXPECT_EQ(value.smallest.overrides[0].value, "nan");
  const Minimized tile = minimal("attention sq=3 skv=300 d=16" + normal, "fa2_bf16_key_of_128_dropped");
  EXPECT_EQ(*tile.smallest.params.find("skv"), "128");
  EXPECT_EQ(tile.signature.locus, "full");
  EXPECT_FALSE(minimal("softmax rows=3 n=200 dtype=fp32 lse=e x=normal@1", "softmax_online_fp32_log2e_in_bf16")
                   .signature.mode.empty());
  const Minimized part = minimal("merge parts=5 rows=6 dv=8 dtype=fp32 o_parts=normal@1 lse_parts=normal@2",
                                 "merge_two_pass_fp32_part_lost");
  EXPECT_EQ(part.smallest.params.find("parts"), nullptr) << "two, the default";
  EXPECT_EQ(part.signature.mode, "dropped_keys");
}

TEST(Minimizer, StopsWhenItsRunsAreUsedUpAndRefusesWhatIsNoFailure) {
  const std::unique_ptr<Runner> runner = mutants();
  const Case c = parse_case("attention sq=3 skv=300 d=16 q=normal@1 k=normal@2 v=normal@3");
  const Minimized found = minimize(c, "fa2_bf16_last_key_dropped", *runner, {.runs = 3});
  EXPECT_FALSE(found.minimal);
  EXPECT_EQ(found.runs, 3);
  EXPECT_LT(case_size(found.smallest), case_size(c));
  try {
    minimize(c, "fa2_bf16", *runner);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("fa2_bf16 does not fail on it; the verdict is clean"), std::string::npos);
  }
}

TEST(Minimizer, LetsAFailureBecomeSimplerOrClearerAndNothingElse) {
  const Signature tail{"attention", "dropped_keys", "tail+pages", "slight"};
  const auto with = [&](const char* mode, const char* locus, const char* band) {
    return Signature{"attention", mode, locus, band};
  };
  EXPECT_TRUE(keeps(tail, tail));
  EXPECT_TRUE(keeps(tail, with("dropped_keys", "part", "gross")));
  EXPECT_FALSE(keeps(tail, with("dropped_keys", "tiles+pages", "slight")));
  EXPECT_FALSE(keeps(tail, with("dropped_keys", "tail+masked", "slight")));
  EXPECT_FALSE(keeps(tail, with("dropped_keys", "empty", "slight")));
  EXPECT_FALSE(keeps(tail, with("mask_edge", "tail+pages", "slight")));
  EXPECT_FALSE(keeps(tail, with("dropped_keys", "tail+pages", "nonfinite")));
  EXPECT_TRUE(keeps(with("unclassified_zero", "part", "gross"), with("dropped_keys", "part", "gross")));
  EXPECT_FALSE(keeps(with("unclassified_zero", "part", "gross"), with("crash", "part", "gross")));
  EXPECT_FALSE(keeps(with("dropped_keys", "part", "gross"), with("unclassified_zero", "part", "gross")));
  EXPECT_FALSE(keeps(with("a", "part", "gross"), with("a", "part", "slight")));
  EXPECT_FALSE(keeps(with("a", "empty", "gross"), with("a", "part", "gross")));
}

}  // namespace
}  // namespace assay
