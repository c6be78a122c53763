// The range ladders of softmax and merge: at each threshold the verdict turns from clean to out_of_range, never to a finding.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fuzz/pipeline.h"
#include "fuzz/suites.h"

namespace assay {
namespace {

std::vector<double> powers(int low, int high) {
  std::vector<double> all;
  for (int e = low; e <= high; ++e) all.push_back(std::ldexp(1.0, e));
  return all;
}

/// The kernels whose name begins with `only` climb: {} in the line stands for the rung. `reason`: what the upper rungs leave.
void climb(const std::string& line, const std::vector<double>& rungs, const std::string& reason,
           const std::string& only) {
  const auto runner = in_process_runner();
  int climbed = 0;
  for (const KernelIdentity& kernel : runner->kernels()) {
    if (!kernel.name.starts_with(only) || !takes(kernel, parse_case(fmt::format(fmt::runtime(line), 1.0)))) continue;
    bool clean_seen = false, left = false;
    for (const double rung : rungs) {
      const std::string rung_line = fmt::format(fmt::runtime(line), rung);
      const Record record = run_case(parse_case(rung_line), kernel.name, *runner);
      // Rounding of huge logits may leave y no bound long before they leave a format.
      if (record.verdict.kind == CaseVerdict::kClean || record.verdict.kind == CaseVerdict::kVacuous) {
        EXPECT_FALSE(left) << kernel.name << " " << rung_line << ": clean again above the threshold";
        clean_seen = clean_seen || record.verdict.kind == CaseVerdict::kClean;
      } else {
        ASSERT_EQ(record.verdict.kind, CaseVerdict::kOutOfRange)
            << kernel.name << " " << rung_line << record.verdict.evidence;
        EXPECT_EQ(record.verdict.reason.substr(0, reason.size()), reason) << rung_line;
        left = true;
      }
    }
    EXPECT_TRUE(clean_seen && left) << kernel.name << " " << line;
    ++climbed;
  }
  EXPECT_EQ(climbed, 1) << line;
}

TEST(SoftmaxRange, LogitsLeaveFp32) {
  climb("softmax n=3 dtype=fp32 lse=e scale={} x=constant(1e19)", powers(-60, 68), "scale x", "softmax_two_pass");
  climb("softmax n=3 dtype=bf16 scale=3 x=constant({})", powers(0, 127), "scale x", "softmax_two_pass");
}

TEST(SoftmaxRange, ARoundedMaximumMayMoveTheExponentialOutOfFp32) {
  climb("softmax n=3 dtype=fp32 x=constant({})", powers(20, 40), "P, residual", "softmax_online");
  climb("softmax n=4096 dtype=fp32 x=constant({})", {10, 1e9, 1.2e9, 1.3e9, 1.33e9, 1.4e9}, "l", "softmax_online");
}

TEST(SoftmaxRange, AFoldedScaleMustBeNormal) {
  climb("softmax n=5 dtype=fp32 scale={}", {1e-30, 1e-37, 1e-38, 1e-39, 1e-44}, "1 / (scale", "softmax_online");
  climb("softmax n=5 dtype=fp32 scale={} x=constant(0)", {1e37, 2.3e38, 2.4e38, 3e38}, "scale log2 e",
        "softmax_online");
}

TEST(SoftmaxRange, TheLowestNumberAsAMaskStaysInside) {
  for (const char* kernel : {"softmax_two_pass_fp32", "softmax_online_fp32"})
    EXPECT_EQ(run_case(parse_case("softmax rows=2 n=90 dtype=fp32 lse=e mask=additive mask.data=finite_min(0.5)@1"),
                       kernel, *in_process_runner())
                  .verdict.kind,
              CaseVerdict::kClean);
}

TEST(MergeRange, SumsOfLargeOutputsLeaveFp32ButNormalisedOnesDoNot) {
  const std::string line = "merge parts=3 dv=4 dtype=fp32 o_parts=constant({}) lse_parts=constant(1)";
  climb(line, powers(120, 127), "O accumulator", "merge_two_pass");
  for (const double rung : powers(120, 127))
    EXPECT_EQ(run_case(parse_case(fmt::format(fmt::runtime(line), rung)), "merge_pairwise_fp32", *in_process_runner())
                  .verdict.kind,
              CaseVerdict::kClean);
}

TEST(MergeRange, ProductsOfManyPartsMayEachRoundToASubnormalNumber) {
  // Found by fuzzing: 23 shares of outputs near fp32's smallest numbers.
  for (const char* kernel : {"merge_two_pass_bf16", "merge_pairwise_bf16"})
    for (const char* line : {"merge parts=23 rows=3 dv=1 out=fp32 o_parts=part_near_ties(0)@209247 lse_parts=constant",
                             "merge parts=300 rows=5 dv=3 out=fp32 o_parts=part_near_ties(0)@209247 lse_parts=constant(88.7)"}) {
      const Record record = run_case(parse_case(line), kernel, *in_process_runner());
      EXPECT_EQ(record.verdict.kind, CaseVerdict::kClean) << kernel << " " << line << ": " << record.verdict.evidence;
    }
}

TEST(OpRange, AMaximumOnTheWayMayCarryAResidualExponentOutOfRange) {
  // Found by fuzzing: fl(m c) of a first tile of finite_min is off by 1e31, so its weights are infinite before the last key's
  // maximum makes them nothing.
  const auto runner = in_process_runner();
  const Record record = run_case(parse_case("softmax n=65 scale=0.5 x=finite_min(1)@1 set=x[0,64]:0"), "softmax_online_bf16", *runner);
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kOutOfRange) << record.verdict.evidence;
  EXPECT_NE(record.verdict.reason.find("residual exponent of the maximum"), std::string::npos) << record.verdict.reason;
  // In one tile there is no such maximum.
  EXPECT_EQ(run_case(parse_case("softmax n=64 scale=0.5 x=finite_min(1)@1 set=x[0,63]:0"), "softmax_online_bf16", *runner).verdict.kind,
            CaseVerdict::kClean);
}

}  // namespace
}  // namespace assay
