// Relations between runs: every correct kernel keeps them bit for bit, and faults of addresses and scales break them.
#include "fuzz/metamorphic.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cases/materialize.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all = suite_cases("smoke");
  const std::vector<Case> edge = suite_cases("edge"), adversarial = suite_cases("adversarial");
  for (std::size_t n = 0; n < edge.size(); n += 151) all.push_back(edge[n]);
  for (std::size_t n = 0; n < adversarial.size(); n += 307) all.push_back(adversarial[n]);
  return all;
}

TEST(Metamorphic, CorrectKernelsKeepEveryRelation) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  std::map<std::string_view, int> asked;
  for (const Case& c : cases()) {
    if (c.op != "attention") continue;
    const Problem problem = materialize(c);
    for (const KernelIdentity& kernel : runner->kernels()) {
      if (!takes(kernel, c)) continue;
      const RunOutcome first = runner->run(kernel.name, problem.params, problem.inputs, problem.outputs);
      if (first.status != RunStatus::kOk) continue;
      for (const Relation& relation : relations()) {
        asked[relation.name] += relation.relate(c, problem).has_value();
        EXPECT_EQ(violation(relation, c, problem, kernel.name, first, *runner), "")
            << kernel.name << ' ' << print_case(c);
      }
    }
  }
  for (const Relation& relation : relations()) EXPECT_GE(asked[relation.name], 3) << relation.name;
}

/// The relations that a mutant breaks on a case.
std::set<std::string> broken(const std::string& mutant, const std::string& line) {
  const std::unique_ptr<Runner> runner = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}});
  const Case c = parse_case("attention " + line);
  const Problem problem = materialize(c);
  const RunOutcome first = runner->run(mutant, problem.params, problem.inputs, problem.outputs);
  EXPECT_EQ(first.status, RunStatus::kOk) << first.reason;
  std::set<std::string> names;
  for (const Relation& relation : relations())
    if (!violation(relation, c, problem, mutant, first, *runner).empty()) names.insert(std::string(relation.name));
  return names;
}

TEST(Metamorphic, AFalseMaximumInRawScoresIsSeenByTradingTheScale) {
  const std::string line = "sq=2 skv=20 scale=0.001 q=constant(240) k=normal(3,-200)@2 v=normal@3";
  EXPECT_EQ(broken("fa2_bf16_false_max", line), (std::set<std::string>{"trade_scale"}));
  EXPECT_EQ(broken("fa2_bf16", line), std::set<std::string>{});
}

TEST(Metamorphic, AMissingMaximumIsSeenByAShiftOfAllLogits) {
  const std::string line = "hq=2 sq=3 skv=70 d=16 dtype=fp32 mask=additive";
  EXPECT_EQ(broken("naive_fp32_no_shift", line), (std::set<std::string>{"logit_shift"}));
  EXPECT_EQ(broken("naive_fp32", line), std::set<std::string>{});
}

TEST(Metamorphic, AMissingRescalingIsSeenByKeysInTheReverseOrder) {
  const std::string line = "hq=2 sq=3 skv=256 q=probe@1 k=rising(4)@2 v=normal@3";
  EXPECT_EQ(broken("fa2_bf16_accumulator_not_rescaled", line), (std::set<std::string>{"reverse_keys"}));
  EXPECT_EQ(broken("fa2_bf16", line), std::set<std::string>{});
}

TEST(Metamorphic, AKeyDroppedEverywhereBreaksNone) {
  EXPECT_EQ(broken("fa2_bf16_last_key_dropped", "b=2 hq=4 hkv=2 sq=5 skv=70"), std::set<std::string>{});
}

}  // namespace
}  // namespace assay
