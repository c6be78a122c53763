// Each planted fault does what it says, and nothing where it does not apply; run through the mutant program.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/worker.h"
#include "tests/kernels/scenario.h"

namespace assay {
namespace {

class Mutant : public testing::Test {
 protected:
  static void SetUpTestSuite() { runner_ = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}}).release(); }
  static void TearDownTestSuite() { delete runner_; }

  static RunOutcome run(const std::string& kernel, const Scenario& s) {
    RunOutcome outcome = runner_->run(kernel, s.params, s.inputs, s.outputs);
    EXPECT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
    return outcome;
  }
  static double o(const RunOutcome& outcome, const Scenario& s, std::int64_t row, std::int64_t channel) {
    return outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, row, channel));
  }
  static double lse(const RunOutcome& outcome, std::int64_t row) { return outcome.outputs[1].view().value(row); }

  static Runner* runner_;
};
Runner* Mutant::runner_ = nullptr;

TEST_F(Mutant, DeclaresItsBaseAndAgreesWithItWhereNoFaultApplies) {
  const Scenario s("sq=3 skv=1 d=16");
  const RunOutcome good = run("fa2_bf16", s);
  int mutants = 0;
  for (const KernelIdentity& kernel : runner_->kernels()) {
    if (!kernel.mutant) continue;
    ++mutants;
    const RunOutcome outcome = run(kernel.name, s);
    EXPECT_EQ(outcome.declared, good.declared) << kernel.name;
    for (std::size_t t = 0; t < good.outputs.size(); ++t)
      EXPECT_EQ(outcome.outputs[t].bytes, good.outputs[t].bytes) << kernel.name;
  }
  EXPECT_EQ(mutants, 6);
}

TEST_F(Mutant, OfTheMutantProgramLeavesTheBaseKernelAlone) {
  const Scenario s("hq=2 sq=100 skv=300 d=32 mask=causal");
  run("fa2_bf16_false_max", s);
  const RunOutcome here = in_process_runner()->run("fa2_bf16", s.params, s.inputs, s.outputs);
  const RunOutcome there = run("fa2_bf16", s);
  for (std::size_t t = 0; t < 2; ++t) EXPECT_EQ(here.outputs[t].bytes, there.outputs[t].bytes);
}

TEST_F(Mutant, NanEmptyExtentIsNanInRowsThatStartEmpty) {
  Scenario s("sq=3 skv=300 d=16 mask=bool");
  Tensor& mask = s.input("mask");  // row 0: no key; row 1: keys of the first tile only; row 2: all
  for (std::int64_t j = 0; j < 300; ++j) {
    mask.output().set_code(j, 0);
    mask.output().set_code(300 + j, j < 128 ? 1 : 0);
    mask.output().set_code(600 + j, 1);
  }
  const RunOutcome outcome = run("fa2_bf16_nan_empty_extent", s);
  const RunOutcome good = run("fa2_bf16", s);
  for (std::int64_t c = 0; c < 16; ++c) {
    EXPECT_TRUE(std::isnan(o(outcome, s, 0, c)));
    EXPECT_TRUE(std::isnan(o(outcome, s, 1, c)));
    EXPECT_EQ(o(outcome, s, 2, c), o(good, s, 2, c));
    EXPECT_FALSE(std::isnan(o(good, s, 1, c)));
  }
}

TEST_F(Mutant, FalseMaxIsZeroWhereEveryRawScoreLiesBelowIt) {
  for (const double k : {-150.0, -256.0}) {  // raw scores near -36,000 and -61,440
    Scenario s("sq=1 skv=20 d=16 scale=1");
    s.set("q", 0, 0, 0, 0, 240);
    for (std::int64_t j = 0; j < 20; ++j) s.set("k", 0, 0, j, 0, k);
    const RunOutcome outcome = run("fa2_bf16_false_max", s);
    for (std::int64_t c = 0; c < 16; ++c) EXPECT_EQ(o(outcome, s, 0, c) == 0, k < -200) << k;
    EXPECT_EQ(lse(outcome, 0) == -5e4, k < -200) << k;
  }
}

TEST_F(Mutant, SubnormalFlushLosesSubnormalValuesOnly) {
  Scenario s("sq=1 skv=1 d=16");
  s.set("v", 0, 0, 0, 0, 0x1p-127);
  s.set("v", 0, 0, 0, 1, 0x1p-126);
  const RunOutcome outcome = run("fa2_bf16_subnormal_flush", s);
  EXPECT_EQ(o(outcome, s, 0, 0), 0);
  EXPECT_EQ(o(outcome, s, 0, 1), 0x1p-126);
}

TEST_F(Mutant, LastKeyDroppedDoesNotSeeTheLastKey) {
  Scenario s("sq=2 skv=30 d=16");
  const RunOutcome before = run("fa2_bf16_last_key_dropped", s);
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 29, c, 100);
  const RunOutcome after = run("fa2_bf16_last_key_dropped", s);
  EXPECT_EQ(before.outputs[0].bytes, after.outputs[0].bytes);
  EXPECT_NE(run("fa2_bf16", s).outputs[0].bytes, after.outputs[0].bytes);
}

TEST_F(Mutant, MaskShiftedByOneSeesTheNextKey) {
  Scenario s("sq=4 skv=4 d=16 mask=causal");
  const RunOutcome before = run("fa2_bf16_mask_shifted_by_one", s);
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 2, c, 100);
  const RunOutcome after = run("fa2_bf16_mask_shifted_by_one", s);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(o(before, s, i, 0) == o(after, s, i, 0), i == 0) << i;
}

TEST_F(Mutant, AccumulatorNotRescaledHasTheRightLse) {
  Scenario s("sq=1 skv=256 d=16 scale=1");
  s.set("q", 0, 0, 0, 0, 1);
  for (std::int64_t j = 0; j < 256; ++j) s.set("k", 0, 0, j, 0, j < 128 ? 4 : 1);  // the maximum rises, last tile first
  const RunOutcome outcome = run("fa2_bf16_accumulator_not_rescaled", s);
  const RunOutcome good = run("fa2_bf16", s);
  EXPECT_EQ(outcome.outputs[1].bytes, good.outputs[1].bytes);
  EXPECT_NE(outcome.outputs[0].bytes, good.outputs[0].bytes);
}

}  // namespace
}  // namespace assay
