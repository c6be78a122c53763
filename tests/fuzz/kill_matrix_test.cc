// The kill matrix in small: weakest levels, foreign votes, and a result that does not depend on the threads.
#include "fuzz/kill_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/false_alarms.h"
#include "kernels/worker.h"

namespace assay {
namespace {

std::unique_ptr<Runner> open() { return worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}}); }

std::vector<KernelIdentity> named(const std::vector<std::string>& names) {
  std::vector<KernelIdentity> found;
  for (const KernelIdentity& kernel : open()->kernels())
    if (std::find(names.begin(), names.end(), kernel.name) != names.end()) found.push_back(kernel);
  EXPECT_EQ(found.size(), names.size());
  return found;
}

const MutantResult& row(const KillMatrix& matrix, const std::string& name) {
  return *std::find_if(matrix.mutants.begin(), matrix.mutants.end(),
                       [&](const MutantResult& m) { return m.mutant.name == name; });
}

TEST(KillMatrix, TellsTheWeakestLevelAndWhatOthersSay) {
  const std::vector<KernelIdentity> mutants =
      named({"fa2_bf16_last_key_dropped", "fa2_bf16_alpha_in_bf16", "fa2_bf16_nan_empty_extent",
             "softmax_online_fp32_sum_order_varies"});
  const KillMatrix matrix = kill_matrix(
      mutants, {.suites = {"smoke", "no such suite"}, .cases = 30, .customary = {"cosine-0.99"}, .jobs = 2}, open);
  EXPECT_EQ(matrix.left_out, 0U);
  const MutantResult& dropped = row(matrix, "fa2_bf16_last_key_dropped");
  EXPECT_EQ(dropped.mutant.fault, "kLastKeyDropped");
  EXPECT_EQ(dropped.mutant.base, "fa2_bf16");
  EXPECT_EQ(dropped.weakest(), KillLevel::kT0);
  EXPECT_GE(dropped.changed, 8);
  EXPECT_LT(dropped.largest_error, 1);
  EXPECT_EQ(dropped.ours_on_own.at("cosine-0.99").killed, dropped.ours_on_own.at("cosine-0.99").cases);
  EXPECT_EQ(dropped.on_own.at("cosine-0.99").killed, 0);
  EXPECT_GT(dropped.on_suites.at("cosine-0.99").killed, 0);
  EXPECT_EQ(row(matrix, "fa2_bf16_alpha_in_bf16").weakest(), KillLevel::kT1);
  EXPECT_EQ(row(matrix, "fa2_bf16_nan_empty_extent").weakest(), KillLevel::kClass);
  EXPECT_EQ(row(matrix, "softmax_online_fp32_sum_order_varies").weakest(), KillLevel::kHarness);
}

TEST(KillMatrix, IsTheSameOnOneThreadAndOnTwo) {
  const std::vector<KernelIdentity> mutants = named({"fa2_bf16_last_key_dropped", "split_bf16_split_lost"});
  const KillMatrix one =
      kill_matrix(mutants, {.suites = {"smoke"}, .cases = 6, .customary = {"gpuemu"}, .jobs = 1}, open);
  const KillMatrix two =
      kill_matrix(mutants, {.suites = {"smoke"}, .cases = 6, .customary = {"gpuemu"}, .jobs = 2}, open);
  for (std::size_t m = 0; m < mutants.size(); ++m) {
    EXPECT_EQ(one.mutants[m].killed, two.mutants[m].killed);
    EXPECT_EQ(one.mutants[m].first, two.mutants[m].first);
    EXPECT_EQ(one.mutants[m].largest_error, two.mutants[m].largest_error);
  }
}

TEST(KillMatrix, StartsNothingAfterTheDeadline) {
  const Deadline past{std::chrono::steady_clock::now()};
  const KillMatrix matrix =
      kill_matrix(named({"fa2_bf16_last_key_dropped"}), {.suites = {"smoke"}, .deadline = past}, open);
  EXPECT_GT(matrix.left_out, 10U);
  EXPECT_EQ(matrix.mutants.front().cases, 0);
}

TEST(FalseAlarms, CountOursAndThoseOfOthersOnCorrectKernels) {
  const FalseAlarms alarms = false_alarms({.cases = 12, .jobs = 2}, open);
  EXPECT_EQ(alarms.cases, 12);
  const Alarms& ours = alarms.rules.at("assay");
  EXPECT_EQ(ours.alarms, 0) << ours.first;
  EXPECT_GT(ours.runs, 20);
  EXPECT_EQ(alarms.clean + alarms.out_of_range + alarms.uncertain + alarms.vacuous, ours.runs);
  EXPECT_GT(alarms.rules.at("torch-testing").alarms, 0);
  EXPECT_LE(alarms.rules.at("torch-testing").cases_alarmed, alarms.rules.at("torch-testing").alarms);
}

TEST(FalseAlarms, DrawDistinctLinesBeyondTheSuite) {
  const std::size_t count = adversarial_cases(1U << 12U, 7).size();
  EXPECT_EQ(count, 1U << 12U);
  EXPECT_EQ(adversarial_cases(3, 7).size(), 3U);
}

}  // namespace
}  // namespace assay
