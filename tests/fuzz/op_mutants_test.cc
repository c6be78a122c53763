// Mutants of softmax and merge: each is rejected where its fault applies, at the element where it starts, and nowhere
// else.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

class OpMutant : public testing::Test {
 protected:
  static void SetUpTestSuite() { runner_ = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}}).release(); }
  static void TearDownTestSuite() { delete runner_; }

  static Record run(const std::string& kernel, const std::string& line) {
    return run_case(parse_case(line), kernel, *runner_);
  }
  static std::int64_t rejected(const Record& record, std::string_view role) {
    for (const OutputMeasure& output : record.measurement.outputs)
      if (output.role == role) return output.rejected;
    return -1;
  }

  static Runner* runner_;
};
Runner* OpMutant::runner_ = nullptr;

TEST_F(OpMutant, ASumThatIsNotRescaledIsRejectedFromTheStepOnWhereTheMaximumRises) {
  const std::string kernel = "softmax_online_fp32_sum_not_rescaled";
  const Record risen = run(kernel, "softmax n=40 dtype=fp32 steps=8 lse=e x=small_integers(1)@3 set=x[0,17]:6");
  EXPECT_EQ(risen.verdict.kind, CaseVerdict::kFinding);
  EXPECT_EQ(rejected(risen, "l"), 3);  // steps 2, 3 and 4
  EXPECT_EQ(rejected(risen, "m"), 0);
  EXPECT_EQ(rejected(risen, "lse"), 1);
  EXPECT_EQ(run(kernel, "softmax n=40 dtype=fp32 steps=8 lse=e x=score_rising(-3,8)@1").verdict.kind,
            CaseVerdict::kClean);
  // Without states and LSE the error of y alone gives it away.
  EXPECT_EQ(run(kernel, "softmax n=300 dtype=fp32 x=score_rising(1,64)@1").verdict.kind, CaseVerdict::kFinding);
}

TEST_F(OpMutant, WeightsWithoutTheMaximumOverflowOrVanish) {
  const std::string kernel = "merge_two_pass_bf16_without_max";
  EXPECT_EQ(run(kernel, "merge parts=3 rows=2 dv=8").verdict.kind, CaseVerdict::kClean);
  for (const char* lse : {"normal(1,200)", "normal(1,-300)"}) {
    const Record record = run(kernel, std::string("merge parts=3 rows=2 dv=8 lse_parts=") + lse + "@2");
    EXPECT_EQ(record.verdict.mode, "exponent_overflow") << lse;
    EXPECT_EQ(rejected(record, "o"), 16) << lse;
  }
}

TEST_F(OpMutant, AnUnguardedEmptyPartGivesNanWhereTheStateIsEmptyToo) {
  const std::string kernel = "merge_pairwise_bf16_empty_unguarded";
  EXPECT_EQ(run(kernel, "merge parts=3 rows=2 dv=8").verdict.kind, CaseVerdict::kClean);
  EXPECT_EQ(run(kernel, "merge parts=3 dv=8 set=lse_parts[2,0]:-inf").verdict.kind, CaseVerdict::kClean);
  const Record first = run(kernel, "merge parts=3 rows=2 dv=8 set=lse_parts[0,1]:-inf");
  EXPECT_EQ(first.verdict.mode, "nan_empty_extent");
  EXPECT_EQ(rejected(first, "o"), 8);
  EXPECT_EQ(rejected(first, "lse"), 1);
  EXPECT_EQ(run(kernel, "merge parts=2 dv=8 lse_parts=part_holes(1)").verdict.mode, "nan_empty_extent");
}

TEST_F(OpMutant, ASumInAnotherOrderEachTimeIsSoundInEveryRunAndFoundByTheSecond) {
  const std::string kernel = "softmax_online_fp32_sum_order_varies";
  const Case c = parse_case("softmax rows=3 n=300 dtype=fp32 lse=e");
  EXPECT_EQ(run_case(c, kernel, *runner_).verdict.kind, CaseVerdict::kClean);
  const Record record = run_case(c, kernel, *runner_, Level::kT1, {.runs = 2});
  EXPECT_EQ(record.verdict.mode, "race");
  EXPECT_EQ(record.verdict.level, "invariant");
  EXPECT_NE(record.verdict.evidence.find("between runs on the same bytes"), std::string::npos)
      << record.verdict.evidence;
  EXPECT_NE(record.repro.find("assay check " + kernel + " --repeat 2 --case '"), std::string::npos) << record.repro;
  EXPECT_EQ(run_case(c, "softmax_online_fp32", *runner_, Level::kT1, {.runs = 4}).verdict.kind, CaseVerdict::kClean);
}

TEST_F(OpMutant, TheCuratedCasesOrAWitnessFindEveryOne) {
  std::vector<Case> cases = suite_cases("edge");
  for (const Mode* mode : all_modes()) {
    std::ifstream in(find_data_file("failure_catalog/" + std::string(mode->name) + "/witness.case"));
    for (std::string line; std::getline(in, line);) cases.push_back(parse_case(line));
  }
  std::set<std::string> found, mutants;
  for (const KernelIdentity& kernel : runner_->kernels()) {
    if (!kernel.mutant || kernel.device || kernel.op == "attention") continue;
    mutants.insert(kernel.name);
    for (const Case& c : cases) {
      if (!takes(kernel, c)) continue;
      const CaseVerdict verdict = run_case(c, kernel.name, *runner_, Level::kT1, {.runs = 2}).verdict.kind;
      if (verdict != CaseVerdict::kUnclassified && verdict != CaseVerdict::kFinding) continue;
      found.insert(kernel.name);
      break;
    }
  }
  EXPECT_GE(mutants.size(), 3U);
  EXPECT_EQ(found, mutants);
}

}  // namespace
}  // namespace assay
