// The range ladder: at each threshold of a declared intermediate the verdict turns from clean to out_of_range, and never to
// a finding.
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fuzz/pipeline.h"

namespace assay {
namespace {

struct Ladder {
  std::string line;      ///< {} stands for the rung, a number
  std::vector<double> rungs;
  std::string reason;    ///< what the upper rungs leave
};

std::vector<double> powers(int low, int high) {
  std::vector<double> all;
  for (int e = low; e <= high; ++e) {
    const double x = e >= 0 ? static_cast<double>(std::uint64_t{1} << (e % 32)) : 1.0 / static_cast<double>(std::uint64_t{1} << -e);
    double scaled = x;
    for (int i = 0; i < e / 32; ++i) scaled *= 4294967296.0;
    all.push_back(scaled);
  }
  return all;
}

/// Every correct kernel that takes the case climbs the ladder.
void climb(const Ladder& ladder, std::string_view only = "") {
  const auto runner = in_process_runner();
  int climbed = 0;
  for (const KernelIdentity& kernel : runner->kernels()) {
    if (kernel.name.find(only) == std::string::npos) continue;
    bool clean_seen = false, left = false;
    for (const double rung : ladder.rungs) {
      const std::string line = fmt::format(fmt::runtime(ladder.line), rung);
      const Record record = run_case(parse_case(line), kernel.name, *runner);
      const CaseVerdict kind = record.verdict.kind;
      if (kind == CaseVerdict::kSkipped) break;
      ASSERT_TRUE(kind == CaseVerdict::kClean || kind == CaseVerdict::kOutOfRange)
          << kernel.name << " " << line << ": " << verdict_name(kind) << " " << record.verdict.evidence << record.verdict.reason;
      if (kind == CaseVerdict::kClean) {
        EXPECT_FALSE(left) << kernel.name << " " << line << ": clean again above the threshold";
        clean_seen = true;
      } else {
        left = true;
        EXPECT_EQ(record.verdict.reason.substr(0, ladder.reason.size()), ladder.reason) << line;
      }
    }
    if (!clean_seen && !left) continue;
    ++climbed;
    EXPECT_TRUE(clean_seen) << kernel.name << ": no rung is in range";
    EXPECT_TRUE(left) << kernel.name << ": no rung leaves the range";
  }
  EXPECT_GT(climbed, 0);
}

TEST(RangeLadder, ScoresLeaveFp32) {
  climb({"attention skv=1 d=16 dtype=bf16 scale=1e-30 q=one_hot(1e19)@1 k=constant({}) v=normal@3", powers(56, 72), "S"});
}

TEST(RangeLadder, ResidualExponentLeavesFp16P) {
  climb({"attention skv=1 d=16 dtype=fp16 scale={} q=one_hot(16384)@1 k=constant(1024) v=normal@3", powers(0, 12), "P, residual"},
        "fa2");
}

TEST(RangeLadder, ResidualExponentLeavesBf16P) {
  climb({"attention skv=1 d=16 dtype=bf16 scale={} q=one_hot(16384)@1 k=constant(1024) v=normal@3", powers(0, 12), "P, residual"},
        "fa2");
}

TEST(RangeLadder, RowSumLeavesTheNormalReciprocals) {
  climb({"attention skv=4096 d=16 dtype=bf16 scale={} q=one_hot(4096)@1 k=constant(4096) v=constant(1)",
         {1.0, 8.0, 64.0, 80.0, 83.0, 84.0, 86.0}, "l"}, "fa2");
}

TEST(RangeLadder, LogitsLeaveFp32) {
  climb({"attention skv=1 d=16 dtype=fp32 scale={} q=one_hot(1e19)@1 k=constant(1e17) v=normal@3", powers(0, 12), "s c"}, "naive");
}

TEST(RangeLadder, AccumulatorLeavesFp32) {
  climb({"attention skv=7 d=16 dtype=bf16 q=normal@1 k=constant(0.5) v=constant({})", powers(112, 127), "O accumulator"});
}

TEST(RangeLadder, ScaleLeavesTheNormalNumbers) {
  climb({"attention skv=2 d=16 dtype=bf16 scale={} q=normal@1 k=normal@2 v=normal@3", {1e-30, 1e-37, 1e-38, 1e-39, 1e-44}, "1 / (scale"});
}

TEST(RangeLadder, LogitsLeaveFp32BeforeTheirBiasBringsThemBack) {
  climb({"attention skv=2 d=2 dtype=bf16 mask=additive q=constant(12e18) k=constant(12e18) v=normal@3 mask.data=constant(0) scale={} "
         "set=mask[0,0,0,0]:-max set=mask[0,0,0,1]:-max", {0.5, 0.6, 0.7, 0.9, 1.3, 1.5}, "s c before the bias"}, "naive");
}

TEST(RangeLadder, RecipesThatNameARangeNeverGiveAFinding) {
  const auto runner = in_process_runner();
  for (const char* recipe : {"q=probe@1 k=range_ladder@2", "q=probe@1 k=range_ladder(10,40,-1)@2",
                             "q=range_exponents@1 k=range_exponents@2", "q=range_exponents(60,64)@1 k=range_exponents(55,66)@2"})
    for (const char* shape : {"sq=4 skv=1", "sq=3 skv=70", "sq=2 skv=300 mask=causal"})
      for (const char* dtype : {"bf16", "fp16", "fp32"})
        for (const KernelIdentity& kernel : runner->kernels()) {
          const std::string line = fmt::format("attention d=32 dtype={} {} {} v=normal@3", dtype, shape, recipe);
          const Record record = run_case(parse_case(line), kernel.name, *runner);
          EXPECT_NE(record.verdict.kind, CaseVerdict::kFinding) << kernel.name << " " << line << ": " << record.verdict.evidence;
          EXPECT_NE(record.verdict.kind, CaseVerdict::kUnclassified) << kernel.name << " " << line << ": " << record.verdict.evidence;
        }
}

TEST(Range, AFactorOfVMayLeaveItsFormatOverTheRowSum) {
  // Found by fuzzing: v_scale / l rounds to 0 or to infinity, and then 0 times an infinite V, or infinity times 0, is NaN.
  for (const auto& [line, kernel, words] :
       {std::tuple{"attention skv=18 d=1 dtype=fp16 descale=tensor q=ones k=edge_values v=part_holes@2 q_scale=ones k_scale=ones set=v_scale[0]:0x1",
                   "naive_fp16", "l / v_scale"},
        std::tuple{"attention hq=2 hkv=1 d=1 dtype=fp16 descale=tensor q=integers@1 k=uniform@2 v=constant q_scale=constant(-1) "
                   "k_scale=constant(-1) v_scale=ones set=v_scale[0]:0x7f7fffff",
                   "fa2_fp16", "v_scale / l"}}) {
    const Record record = run_case(parse_case(line), kernel, *in_process_runner());
    EXPECT_EQ(record.verdict.kind, CaseVerdict::kOutOfRange) << line << record.verdict.evidence;
    EXPECT_NE(record.verdict.reason.find(words), std::string::npos) << record.verdict.reason;
  }
}

TEST(Range, AKeyBehindAnInfiniteBiasMayLeaveItToo) {
  // Found by fuzzing: +inf meets -inf.
  const Record record = run_case(parse_case("attention skv=2 d=2 mask=additive descale=block scale_block=1 q=constant(4) k=constant(1) "
                                            "set=mask[0,0,0,1]:-inf set=k_scale[0,0,1]:0x7f7fffff"),
                                 "naive_bf16", *in_process_runner());
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kOutOfRange) << record.verdict.evidence;
}

TEST(Range, TheFactorOfAKeyWithoutWeightMayLeaveItInUnitsOfLog2) {
  // 2.9e38 is an fp32 number and 2.9e38 log2 e is none; the score of 0 keeps the logit inside.
  const auto kind = [](const std::string& factor) {
    return run_case(
               parse_case(
                   "attention skv=2 d=2 mask=additive descale=block scale_block=1 q=constant(4) k=constant(0) scale=1 "
                   "set=mask[0,0,0,1]:-inf set=k_scale[0,0,1]:" +
                   factor),
               "naive_bf16", *in_process_runner())
        .verdict.kind;
  };
  EXPECT_EQ(kind("2.9e+38"), CaseVerdict::kOutOfRange);
  EXPECT_NE(kind("2e+38"), CaseVerdict::kOutOfRange);
}

TEST(Range, TheFiniteProductsOfAnInfiniteScoreMayOverflowToTheOtherInfinity) {
  // Found by fuzzing on a GPU: 2 times 1.7e38 is +inf in fp32, and meets -inf.
  const auto verdict = [](const std::string& large) {
    return run_case(parse_case("attention skv=2 d=2 dv=1 dtype=fp32 q=constant(2) k=constant(1) set=k[0,0,0,0]:-inf set=k[0,0,0,1]:" + large),
                    "naive_fp32", *in_process_runner())
        .verdict;
  };
  EXPECT_EQ(verdict("1.7014118346046923e+38").kind, CaseVerdict::kOutOfRange) << verdict("1.7014118346046923e+38").evidence;
  EXPECT_EQ(verdict("1.6e+38").kind, CaseVerdict::kClean) << verdict("1.6e+38").reason;
}

}  // namespace
}  // namespace assay
