// Failures that show too little on their own input to be named: the kernel is asked about the like of it.
#include "failure_catalog/second_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cases/materialize.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"

namespace assay {
namespace {

struct Weak {
  std::string mutant, planted, line;
};

class SecondLook : public ::testing::Test {
 protected:
  Record record(const std::string& kernel, const std::string& line) {
    return run_case(parse_case(line), kernel, *runner_);
  }
  /// Without the kernel to ask: what the input alone says.
  Verdict alone(const std::string& kernel, const std::string& line) {
    const Case c = parse_case(line);
    const Problem problem = materialize(c);
    const RunOutcome run = runner_->run(kernel, problem.params, problem.inputs, problem.outputs);
    return judge_outputs(c, problem, run.declared, run).verdict;
  }
  std::unique_ptr<Runner> runner_ = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
};

TEST_F(SecondLook, NamesWhatOneInputLeavesUnclassified) {
  const Weak all[] = {
      {"softmax_online_bf16_table_exponentials", "function_error",
       "softmax rows=2 n=6 mask=bool x=normal@95994 mask.data=all set=mask[0,3]:0 set=x[0,3]:nan"},
      {"merge_pairwise_bf16_last_part_only", "merge_weight",
       "merge parts=3 rows=2 dv=8 o_parts=normal@164336 lse_parts=normal@362715 set=lse_parts[1,0]:nan"},
      {"fa2_bf16_accumulator_in_fp16", "narrow_accumulation",
       "attention sq=3 skv=2 d=16 mask=causal q=normal@758657 k=normal@14172 v=normal@245229"},
      {"fa2_bf16_p_truncated", "numerator_denominator",
       "attention skv=2 d=16 q=normal@124004 k=normal@660045 v=subnormal@62022"},
      {"paged_flashinfer_bf16_reciprocal_in_bf16", "narrow_accumulation",
       "attention sq=3 skv=2 d=16 mask=causal kv=nhd q=normal@661277 k=normal@124575 v=normal@910519"},
      {"paged_vllm_bf16_split_lanes_swapped", "layout_permutation",
       "attention b=2 hq=2 sq=2 skv=128 d=32 lse=none v_from=k kv=vllm_x page=128 q=normal@60270 k=normal@60271"},
      {"fa1_bf16_sequences_joined", "mask_edge",
       "attention b=2 hq=2 sq=17 skv=16 d=40 scale=-0.125 mask=causal alibi=key align=tl empty_lse=inf batch=packed "
       "q_lens=17,9 v_from=k prefix=8 q=twin_channels@43886 k=cancelling_channels@43887 "
       "k_prefix=cancelling_channels@43887 slopes.data=slopes(1) poison=inf"},
  };
  for (const Weak& weak : all) {
    EXPECT_EQ(alone(weak.mutant, weak.line).kind, CaseVerdict::kUnclassified) << weak.mutant;
    const Verdict verdict = record(weak.mutant, weak.line).verdict;
    EXPECT_EQ(verdict.mode, weak.planted) << weak.mutant << ": " << verdict.evidence;
    EXPECT_TRUE(verdict.evidence.starts_with("no hypothesis explains this input alone; on the like of it (other seeds"))
        << verdict.evidence;
  }
}

// One wrong element: O of a split in bf16 explains it as well as a quadratic exp2 does.
TEST_F(SecondLook, CorrectsANameThatOneElementGave) {
  const std::string kernel = "paged_vllm_bf16_quadratic_exponentials",
                    line =
                        "attention hq=4 hkv=2 sq=2 skv=128 d=16 scale=0.5 mask=additive sink=in_lse empty=mean "
                        "batch=packed kv=vllm page=1 page_seed=2 table_pad=huge q=normal(30)@48879 k=normal@48880 "
                        "v=normal@48881 mask.data=neg_inf@48882 sink.data=constant(40) poison=max";
  EXPECT_EQ(alone(kernel, line).mode, "narrow_accumulation");
  const Verdict verdict = record(kernel, line).verdict;
  EXPECT_EQ(verdict.mode, "function_error") << verdict.evidence;
  EXPECT_NE(std::find(verdict.rivals.begin(), verdict.rivals.end(), "narrow_accumulation"), verdict.rivals.end());
  EXPECT_TRUE(verdict.evidence.starts_with("this input alone could be narrow_accumulation")) << verdict.evidence;
}

// Rows without a key return the mean of V: a contract, or masked keys of logit -cap. Masks of single keys decide.
TEST_F(SecondLook, SeparatesAContractFromAFaultThatLooksLikeIt) {
  const std::string kernel = "split_bf16_softcap_after_mask",
                    line =
                        "attention hq=2 sq=17 skv=33 d=16 mask=bool softcap=0.5 empty=mean q=same_sign@1 "
                        "k=same_sign@2 v=normal@3 mask.data=empty_rows(3)";
  const Verdict verdict = record(kernel, line).verdict;
  EXPECT_EQ(verdict.mode, "logit_transform") << verdict.evidence;
  EXPECT_NE(std::find(verdict.rivals.begin(), verdict.rivals.end(), "empty_set_contract"), verdict.rivals.end());
}

// All lengths are 1: any reciprocal is a constant factor of V.
TEST_F(SecondLook, SeparatesAReciprocalFromAFactorOfV) {
  const Verdict verdict = record("naive_fp16_reciprocal_one_step",
                                 "attention hq=4 hkv=2 dv=32 dtype=fp16 q=small_integers@30591 k=small_integers@30592 "
                                 "v=small_integers(8)@30593")
                              .verdict;
  EXPECT_EQ(verdict.mode, "function_error") << verdict.evidence;
}

/// A runner whose kernel fails on one problem only.
class FailsOnce final : public Runner {
 public:
  explicit FailsOnce(Runner& runner) : runner_(runner) {}
  std::vector<KernelIdentity> kernels() override { return runner_.kernels(); }
  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    RunOutcome outcome = runner_.run(kernel, params, inputs, outputs);
    if (bits_.empty()) bits_ = inputs[0].bytes;
    if (inputs[0].bytes == bits_) {
      std::uint32_t chance = 1;
      for (std::byte& byte : outcome.outputs[0].bytes)
        byte = std::byte{static_cast<std::uint8_t>((chance *= 69069) >> 16)};
    }
    return outcome;
  }
  void restart() override { runner_.restart(); }

 private:
  Runner& runner_;
  std::vector<std::byte> bits_;
};

TEST_F(SecondLook, NeverNamesAFailureThatNoSiblingShows) {
  FailsOnce once(*runner_);
  const Verdict verdict = run_case(parse_case("attention hq=2 sq=9 skv=40 d=16 q=normal@1 k=normal@2 v=normal@3"),
                                   "fa2_bf16_false_max", once)
                              .verdict;
  EXPECT_EQ(verdict.kind, CaseVerdict::kUnclassified) << verdict.mode << ": " << verdict.evidence;
}

TEST_F(SecondLook, LeavesAClearFailureAlone) {
  const Verdict verdict =
      record("fa2_bf16_scale_off_1e-4", "attention hq=2 sq=40 skv=200 d=64 q=normal(2)@1 k=normal@2 v=normal@3")
          .verdict;
  EXPECT_EQ(verdict.mode, "logit_scale");
  EXPECT_EQ(verdict.evidence.find("the like of"), std::string::npos) << verdict.evidence;
}

}  // namespace
}  // namespace assay
