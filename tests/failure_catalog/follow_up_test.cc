// Second runs that separate modes which one input cannot tell apart: offsets that wrap from wrong pages (M16, M14), too
// few parts merged from a lost one (M17, M12).
#include <gtest/gtest.h>

#include <string>

#include "cases/materialize.h"
#include "failure_catalog/classify.h"
#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"

namespace assay {
namespace {

class FollowUps : public ::testing::Test {
 protected:
  Record record(const std::string& kernel, const std::string& line) {
    return run_case(parse_case(line), kernel, *runner_);
  }
  std::unique_ptr<Runner> runner_ = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
};

// One part more than channels: the last one is the only one beyond the width.
TEST_F(FollowUps, MorePartsTellAWidthFromALostPart) {
  const std::string line = "merge parts=9 rows=6 dv=8 dtype=fp32 o_parts=normal@11 lse_parts=normal@12";
  const Record folded = record("merge_two_pass_fp32_parts_beyond_width", line);
  EXPECT_EQ(folded.verdict.mode, "reduce_row_fold") << folded.verdict.evidence;
  EXPECT_NE(folded.verdict.evidence.find("a second run with three more parts rules out dropped_keys"),
            std::string::npos)
      << folded.verdict.evidence;
  const Record lost = record("merge_two_pass_fp32_part_lost", line);
  EXPECT_EQ(lost.verdict.mode, "dropped_keys") << lost.verdict.evidence;
  EXPECT_NE(lost.verdict.evidence.find("a second run with three more parts rules out reduce_row_fold"),
            std::string::npos)
      << lost.verdict.evidence;
  EXPECT_TRUE(folded.verdict.rivals.empty());
  EXPECT_TRUE(lost.verdict.rivals.empty());
}

/// What a kernel makes of a problem, judged.
struct Judged {
  Judged(const Case& of, const Problem& its_problem, const std::string& kernel, Runner& runner)
      : c(of),
        problem(its_problem),
        run(runner.run(kernel, problem.params, problem.inputs, problem.outputs)),
        evaluation(op_named(c.op).evaluate(problem, run.declared, Level::kT1)),
        measurement(measure(evaluation, run.outputs)) {}
  Scene scene() const { return {c, problem, run.declared, evaluation, measurement, run.outputs}; }

  Case c;
  Problem problem;
  RunOutcome run;
  Evaluation evaluation;
  Measurement measurement;
};

// The same keys in other pages: what wraps is still 2^16 elements into the store, what was looked up is elsewhere.
TEST_F(FollowUps, OtherPagesTellAWrapFromAWrongPage) {
  const Mode &wrap = *find_mode("index_wrap"), &page = *find_mode("page_slot_map");
  const Case c = parse_case("attention b=2 hq=2 sq=1 skv=700 d=64 kv=vllm page=16 page_seed=3 kv_lens=700,600");
  const Judged first(c, materialize(c), "paged_vllm_bf16_key_offset_wraps", *runner_);
  EXPECT_FALSE(wrap.follow_up(first.scene(), "dropped_keys"));
  const std::optional<FollowUp> next = wrap.follow_up(first.scene(), "page_slot_map");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->if_clean, FollowUp::Clean::kSaysNothing);  // a wrap may miss all pages that are used
  const Judged sound(c, next->problem, "paged_vllm_bf16", *runner_),
      second(c, next->problem, "paged_vllm_bf16_key_offset_wraps", *runner_);
  for (std::size_t r = 0; r < first.evaluation.truth.rows.size(); ++r)  // the keys are the same
    EXPECT_EQ(first.evaluation.truth.outputs[0].mid[r], sound.evaluation.truth.outputs[0].mid[r]);
  const auto wrapped = diagnose(wrap, second.scene()), looked_up = diagnose(page, second.scene());
  ASSERT_TRUE(wrapped);
  EXPECT_TRUE(!looked_up || looked_up->confidence < wrapped->confidence);
  const Judged wrong(c, next->problem, "paged_vllm_bf16_last_page_repeats", *runner_);
  EXPECT_TRUE(diagnose(page, wrong.scene()));
  EXPECT_FALSE(diagnose(wrap, wrong.scene()));
}

}  // namespace
}  // namespace assay
