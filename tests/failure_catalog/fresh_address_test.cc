// The modes of wrong keys and wrong addresses (M10 to M17) on cases drawn at run time: the planted one is named first
// in at least 95 % of the failing cases, and never by a witness's shape.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>

#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"
#include "oracle/error.h"
#include "tests/failure_catalog/drawn_cases.h"

namespace assay {
namespace {

const std::set<std::string> kModes{"mask_edge",     "ghost_keys",      "dropped_keys", "head_map",
                                   "page_slot_map", "stride_or_dtype", "index_wrap",   "reduce_row_fold"};

struct Tally {
  int failing = 0, first = 0, rival = 0;
};

/// What fault a mutant needs of a case besides what is drawn anyway.
std::string drawn_for(Dice& dice, const KernelIdentity& mutant) {
  if (mutant.op == "merge") return drawn_merge(dice);
  std::string line = drawn_attention(dice, mutant);
  const auto made_large = [&](const std::string& shape) {
    return fmt::format("attention {} dtype={} q={} k={} v={}", shape, mutant.dtypes.front(), drawn_normal(dice),
                       drawn_normal(dice), drawn_normal(dice));
  };
  if (mutant.name.find("wraps") == std::string::npos) return line;
  if (mutant.name.find("query") != std::string::npos)
    return made_large(fmt::format("hq={} sq={} skv={} d=64 rows=60 rows_seed={}", dice.between(1, 3),
                                  dice.between(400, 900), dice.between(10, 80), dice.between(1, 99)));
  if (mutant.name.find("mask") != std::string::npos)
    return made_large(fmt::format("hq={} sq={} skv={} d=16 rows=60 rows_seed={} mask=bool mask.data=keep(0.7)@{}",
                                  dice.between(2, 3), dice.between(60, 100), dice.between(200, 400),
                                  dice.between(1, 99), dice.between(1, 99)));
  const std::string store =
      mutant.name.starts_with("paged")
          ? fmt::format("kv={} page=16 page_seed={} ", dice.pick({"vllm", "vllm_x"}), dice.between(0, 9))
          : "";
  return made_large(fmt::format("{}b={} hq=2 hkv={} sq={} skv={} d={}", store, dice.between(1, 2), dice.between(1, 2),
                                dice.between(1, 4), dice.between(500, 900), dice.pick<int>({64, 96, 128})));
}

TEST(FreshCases, ThePlantedModeIsNamedFirst) {
  constexpr int kFailing = 2, kTries = 60;
  const std::unique_ptr<Runner> runner =
      worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
  Dice dice(20261130);
  std::map<std::string, Tally> by_mode;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> confused;
  Tally all;
  for (const KernelIdentity& mutant : runner->kernels()) {
    if (!mutant.mutant || mutant.device || !kModes.contains(mutant.expects)) continue;
    int failing = 0;
    for (int n = 0; n < kTries && failing < kFailing; ++n) {
      Record record;
      try {
        record = run_case(parse_case(drawn_for(dice, mutant)), mutant.name, *runner);
      } catch (const InputError&) {  // two parts of the drawn line that do not go together
        continue;
      }
      const Verdict& verdict = record.verdict;
      if (verdict.kind != CaseVerdict::kFinding && verdict.kind != CaseVerdict::kUnclassified) continue;
      ++failing;
      Tally& tally = by_mode[mutant.expects];
      ++tally.failing, ++all.failing;
      if (verdict.mode == mutant.expects) {
        ++tally.first, ++all.first;
        continue;
      }
      const bool rival =
          std::find(verdict.rivals.begin(), verdict.rivals.end(), mutant.expects) != verdict.rivals.end();
      tally.rival += rival, all.rival += rival;
      const std::string as = verdict.kind == CaseVerdict::kFinding ? verdict.mode : "unclassified";
      confused[{mutant.name, as + (rival ? " (rival)" : "")}].push_back(record.case_line + "\n      " +
                                                                        verdict.evidence);
    }
    EXPECT_GT(failing, 0) << mutant.name << " never fails on drawn cases";
  }
  for (const auto& [mode, tally] : by_mode) {
    std::cout << fmt::format("{:16} {:3} failing, {:3} named first, {:2} a rival\n", mode, tally.failing, tally.first,
                             tally.rival);
    EXPECT_GE(tally.first + tally.rival, tally.failing * 9 / 10) << mode;
  }
  for (const auto& [what, lines] : confused)
    std::cout << fmt::format("  {} taken for {}: {} times, e.g.\n    {}\n", what.first, what.second, lines.size(),
                             lines.front());
  EXPECT_GE(all.first * 100, all.failing * 95);
}

}  // namespace
}  // namespace assay
