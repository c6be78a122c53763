// Detection floors by probes: every key position, one ghost key and a scale off by 1e-4 are proven, and runs with the
// fault are rejected while correct runs are not.
#include "fuzz/floors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cases/materialize.h"
#include "kernels/kernel.h"
#include "kernels/worker.h"
#include "oracle/floor.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/attention/lost_keys.h"

namespace assay {
namespace {

TEST(Floors, OfTheProbesCoverEveryPositionAGhostAndTheScale) {
  const std::unique_ptr<Runner> runner = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
  for (const char* kernel : {"fa2_bf16", "split_bf16"}) {
    const std::vector<FaultFloor> floors = probe_floors(2048, kernel, *runner, Level::kT1);
    ASSERT_EQ(floors.size(), 4U);
    for (const FaultFloor& floor : floors) {
      EXPECT_EQ(floor.false_alarms, 0) << kernel << " " << floor.fault;
      EXPECT_EQ(floor.level, Level::kT1);
      for (const FloorRuns& runs : floor.runs) {
        EXPECT_GE(runs.runs, 1) << runs.what;
        // A scale is proven by o alone where the probe is made for it.
        const bool by_o = floor.fault != "scale off by 1e-4, one key";
        EXPECT_EQ(by_o ? runs.rejected_o : runs.rejected_lse, runs.runs) << runs.what << " " << floor.fault;
      }
    }
    const FaultFloor &dropped = floors[0], &ghost = floors[1], &scale = floors[2], &edges = floors[3];
    EXPECT_EQ(dropped.covered, 2048);
    EXPECT_EQ(dropped.single, dropped.elements);
    EXPECT_EQ(dropped.runs[0].runs, 16);
    for (const FloorOfOutput& output : dropped.outputs) {
      EXPECT_TRUE(output.proven) << output.role;
      EXPECT_EQ(output.positions, 2048) << output.role;
      EXPECT_LT(output.smallest, 1) << output.role;
    }
    for (const FloorOfOutput& output : ghost.outputs) EXPECT_LT(output.smallest, 1e-3) << output.role;
    EXPECT_LT(scale.outputs[1].smallest, 5e-6);
    EXPECT_FALSE(scale.outputs[0].proven);  // rows of one key: o is the value
    ASSERT_EQ(edges.outputs.size(), 1U);
    EXPECT_TRUE(edges.outputs[0].proven);
    EXPECT_LE(edges.outputs[0].smallest, 1e-4);
  }
}

// The closed form of a lost key against the answer for the keys that are left.
TEST(Floors, ALostKeyIsSeenExactlyWhereTheRowWithoutItLeavesTheSet) {
  const Problem problem = materialize(parse_case("attention hq=2 sq=3 skv=70 d=16 mask=causal sink=in_lse"));
  const Evaluation evaluation = op_named("attention").evaluate(problem, {}, Level::kT0);
  const JudgedLevel level = judged_level(evaluation, Level::kT0);
  const AttentionProblem reader(problem);
  Counterfactual counterfactual(reader);
  const std::vector<LostKeys> lost = visible_losses(problem, evaluation.truth, level, 1);
  ASSERT_EQ(lost.size(), reader.rows().size());
  int seen_o = 0, hidden_o = 0, seen_lse = 0;
  std::vector<std::int32_t> keys;
  for (std::size_t r = 0; r < lost.size(); ++r) {
    reader.admissible_keys(reader.rows()[r], keys);
    ASSERT_EQ(lost[r].keys, keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::vector<std::int32_t> rest = keys;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      const RowOutput without = counterfactual.attend(reader.rows()[r], rest);
      bool in_o = false;
      for (std::size_t c = 0; c < without.o.size(); ++c) {
        const Acceptance& set = level.outputs[0].sets[r * without.o.size() + c];
        in_o = in_o || !accepts(set, encode(set.format, without.o[c]));
      }
      const Acceptance& set = level.outputs[1].sets[r];
      EXPECT_EQ(lost[r].seen_in_o[i], in_o) << r << " " << keys[i];
      EXPECT_EQ(lost[r].seen_in_lse[i], !accepts(set, encode(set.format, without.lse))) << r << " " << keys[i];
      ++(in_o ? seen_o : hidden_o);
      seen_lse += lost[r].seen_in_lse[i];
    }
  }
  EXPECT_GE(seen_o, 10);
  EXPECT_GE(hidden_o, 10);
  EXPECT_GE(seen_lse, 100);
}

TEST(Floors, ASetIsSingleValuedOnlyIfItHoldsOneCode) {
  const Problem exact =
      materialize(parse_case("attention sq=4 skv=64 d=64 scale=1 q=cover_row k=cover_key(4) v=integers(1,16)@1"));
  const Problem plain = materialize(parse_case("attention sq=40 skv=600 d=64"));
  const Kernel& kernel = *find_kernel("fa2_bf16");
  const Op& op = op_named("attention");
  EXPECT_EQ(single_valued(op.evaluate(exact, kernel.declared(exact.params), Level::kT1), 0), 256);
  EXPECT_EQ(single_valued(op.evaluate(exact, {}, Level::kT1), 0), 0);
  const std::int64_t most = single_valued(op.evaluate(plain, kernel.declared(plain.params), Level::kT1), 0);
  EXPECT_LT(most, 40 * 64);
  EXPECT_GT(most, 32 * 64);
}

}  // namespace
}  // namespace assay
