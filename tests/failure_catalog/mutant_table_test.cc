// The mutant table in small: the weakest level that sees each planted fault in o and in the LSE, and faults that none
// sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fuzz/rule_counts.h"
#include "kernels/worker.h"
#include "oracle/measure.h"

namespace assay {
namespace {

constexpr const char* kPlain = "attention sq=8 skv=1000 q=normal@1 k=normal@2 v=normal@3";
constexpr const char* kOneKeyHoldsAll = "attention sq=8 skv=1000 q=normal(30)@1 k=normal@2 v=normal@3";
constexpr const char* kLargeValues = "attention sq=8 skv=1000 q=normal@1 k=normal@2 v=normal(1,300)@3";
constexpr const char* kPlain8 = "attention sq=8 skv=1000 dtype=e4m3 q=normal@1 k=normal@2 v=normal@3";
constexpr const char* kPeaked8 = "attention sq=8 skv=1000 dtype=e4m3 q=normal(4)@1 k=normal@2 v=normal@3";
constexpr const char* kMeanValues8 = "attention sq=8 skv=1000 dtype=e4m3 q=normal@1 k=normal@2 v=normal(1,2)@3";
constexpr const char* kMerge =
    "merge parts=8 rows=8 dtype=fp32 out=bf16 o_parts=normal(0.073)@1 lse_parts=normal(0.058,6.74)@2";

struct Line {
  std::string mutant, case_line;
  std::string o, lse;  ///< weakest level that rejects some element; empty: none does
};

const std::vector<Line>& lines() {
  static const std::vector<Line> all{
      {"fa2_bf16_scale_off_1e-3", kPlain, "T1", "T0"},
      {"fa2_bf16_scale_off_1e-4", kPlain, "T1", "T0"},
      {"fa2_bf16_last_key_dropped", kPlain, "T0", "T0"},
      {"fa2_bf16_key_of_128_dropped", kPlain, "T0", "T0"},
      {"fa2_bf16_accumulator_not_rescaled", kPlain, "T0", ""},
      {"fa2_bf16_alpha_in_bf16", kPlain, "T1", ""},
      {"fa2_bf16_score_in_bf16", kPlain, "T1", "T0"},
      {"fa2_bf16_score_in_fp16", kPlain, "T1", "T1"},
      {"fa2_bf16_p_truncated", kPlain, "T1", ""},
      {"fa2_bf16_sum_in_bf16", kPlain, "T1", "T0"},
      {"fa2_bf16_accumulator_in_bf16", kPlain, "T1", ""},
      {"fa2_bf16_accumulator_in_fp16", kPlain, "T1", ""},
      {"fa2_bf16_exponential_alternates", kPlain, "T1", "T0"},
      {"fa2_bf16_cubic_exponentials", kPlain, "T1", ""},
      {"fa2_bf16_output_truncated", kPlain, "T1", ""},
      {"fa2_bf16_padded_key_leaks", kPlain, "T1", "T0"},
      {"fa2_bf16_sum_of_rounded_p", kPlain, "T1", "T0"},
      {"fa2_bf16_mask_shifted_by_one", "attention sq=64 d=64 mask=causal q=normal@1 k=normal@2 v=normal@3", "T0", "T0"},
      {"split_bf16_partial_lse_in_bf16", kPlain, "T1", "T0"},
      {"split_bf16_partial_output_in_bf16", kPlain, "T1", ""},
      {"split_bf16_split_lost", kPlain, "T0", "T0"},
      {"merge_two_pass_fp32_lse_in_bf16", kMerge, "T0", "T0"},
      {"merge_two_pass_fp32_parts_in_bf16", kMerge, "T0", ""},
      {"merge_two_pass_fp32_part_lost", kMerge, "T0", "T0"},
      {"fa3_e4m3_key_of_128_dropped", kPlain8, "T1", "T1"},
      {"fa3_e4m3_lazy_maximum", kPlain8, "T1", ""},
      {"fa3_e4m3_lazy_maximum", kPeaked8, "T0", ""},
      {"fa3_e4m3_promotion_missing", kMeanValues8, "T1", ""},
      // Survivors: under the ulp of large outputs, behind one key with all the weight, and truncations that cancel.
      {"fa2_bf16_scale_off_1e-3", kLargeValues, "", "T0"},
      {"fa2_bf16_exponential_alternates", kLargeValues, "", "T0"},
      {"fa2_bf16_last_key_dropped", kOneKeyHoldsAll, "", ""},
      {"fa3_e4m3_promotion_missing", kPlain8, "", ""},
  };
  return all;
}

std::string base_of(const std::string& mutant) {
  for (const std::string base : {"fa2_bf16", "fa3_e4m3", "split_bf16", "merge_two_pass_fp32"})
    if (mutant.starts_with(base + "_")) return base;
  return {};
}

std::string weakest_level(const RuleCounts& output) {
  for (const RuleCounts::AtLevel& at : output.levels)
    if (at.rejected > 0) return std::string(level_name(at.level));
  return {};
}

TEST(MutantTable, TellsAtWhichLevelEachFaultIsSeen) {
  const std::unique_ptr<Runner> runner = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}});
  std::map<std::string, std::vector<Line>> by_case;
  for (const Line& line : lines()) by_case[line.case_line].push_back(line);
  for (const auto& [case_line, group] : by_case) {
    std::vector<std::string> kernels;
    for (const Line& line : group)
      for (const std::string& kernel : {base_of(line.mutant), line.mutant})
        if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    for (const KernelCounts& counts : rule_counts(parse_case(case_line), kernels, *runner, Level::kT2)) {
      ASSERT_EQ(counts.no_outputs, "") << counts.kernel;
      ASSERT_EQ(counts.outputs.size(), 2U);
      Line expected{counts.kernel, case_line, "", ""};  // of a correct kernel
      for (const Line& line : group)
        if (line.mutant == counts.kernel) expected = line;
      EXPECT_EQ(weakest_level(counts.outputs[0]), expected.o) << "o of " << counts.kernel << " on " << case_line;
      EXPECT_EQ(weakest_level(counts.outputs[1]), expected.lse) << "lse of " << counts.kernel << " on " << case_line;
      if (expected.mutant == base_of(expected.mutant)) continue;
      for (const RuleCounts& output : counts.outputs)
        EXPECT_EQ(output.levels.back().level, counts.kernel.starts_with("merge") ? Level::kT0 : Level::kT2);
    }
  }
}

TEST(RuleCounts, CountALevelTogetherWithThoseBelowAndAllcloseOnItsOwn) {
  const std::unique_ptr<Runner> runner = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}});
  const std::vector<KernelCounts> all =
      rule_counts(parse_case(kPlain), {"split_bf16_split_lost", "naive_bf16", "fa3_e4m3"}, *runner, Level::kT1);
  const RuleCounts& lost = all[0].outputs[0];
  ASSERT_EQ(lost.levels.size(), 2U);  // T2 was not asked for
  EXPECT_EQ(lost.judged, 512);
  EXPECT_GT(lost.levels[0].rejected, 256);
  EXPECT_GT(lost.levels[1].rejected, lost.levels[0].rejected);
  EXPECT_LT(lost.levels[1].median_tau, lost.levels[0].median_tau / 10);
  EXPECT_GT(lost.outside[0], 0);
  EXPECT_GT(lost.outside[1], lost.outside[0]);
  EXPECT_EQ(all[1].outputs[0].levels.size(), 1U);  // naive_bf16 rounds no P: nothing to replay
  EXPECT_EQ(all[2].no_outputs, "takes e4m3 inputs only");
  EXPECT_TRUE(all[2].outputs.empty());
}

}  // namespace
}  // namespace assay
