// Accumulators, partial results and factors in 16 bits where fp32 is declared (numerics.md 1.3 and 2.13).
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16ScoreInBf16{mutant_of<"fa2_bf16", Fault::kScoreInBf16>(
    "fa2_bf16_score_in_bf16", "fa2_bf16 that stores S in bf16", "narrow_accumulation")};
const RegisterKernel kFa2Bf16ScoreInFp16{mutant_of<"fa2_bf16", Fault::kScoreInFp16>(
    "fa2_bf16_score_in_fp16", "fa2_bf16 that stores S in fp16", "narrow_accumulation", "pytorch #119131")};
const RegisterKernel kFa4Bf16ScoreSumInFp16{mutant_of<"fa4_bf16", Fault::kScoreSumInFp16>(
    "fa4_bf16_score_sum_in_fp16", "fa4_bf16 that accumulates q k in fp16", "narrow_accumulation", "llama.cpp #8412")};
const RegisterKernel kNaiveBf16ScoreSumInBf16{mutant_of<"naive_bf16", Fault::kScoreSumInBf16>(
    "naive_bf16_score_sum_in_bf16", "naive_bf16 that accumulates q k in bf16", "narrow_accumulation")};
const RegisterKernel kFa2Bf16SumInBf16{mutant_of<"fa2_bf16", Fault::kSumInBf16>(
    "fa2_bf16_sum_in_bf16", "fa2_bf16 that stores the row sum in bf16 after every key tile", "narrow_accumulation")};
const RegisterKernel kFa2Fp16SumInFp16{mutant_of<"fa2_fp16", Fault::kSumInFp16>(
    "fa2_fp16_sum_in_fp16", "fa2_fp16 that stores the row sum in fp16 after every key tile", "narrow_accumulation")};
const RegisterKernel kSoftmaxTwoPassBf16RowSumInBf16{mutant_of<"softmax_two_pass_bf16", Fault::kRowSumInBf16>(
    "softmax_two_pass_bf16_row_sum_in_bf16", "softmax_two_pass_bf16 that accumulates the row sum in bf16",
    "narrow_accumulation", "tt-metal #52045")};
const RegisterKernel kFa2Bf16AlphaInBf16{mutant_of<"fa2_bf16", Fault::kAlphaInBf16>(
    "fa2_bf16_alpha_in_bf16", "fa2_bf16 whose rescaling factor of O is rounded to bf16", "narrow_accumulation")};
const RegisterKernel kFa2Bf16AccumulatorInBf16{mutant_of<"fa2_bf16", Fault::kAccumulatorInBf16>(
    "fa2_bf16_accumulator_in_bf16", "fa2_bf16 that stores O in bf16 after every key tile", "narrow_accumulation")};
const RegisterKernel kFa2Bf16AccumulatorInFp16{mutant_of<"fa2_bf16", Fault::kAccumulatorInFp16>(
    "fa2_bf16_accumulator_in_fp16", "fa2_bf16 whose P V accumulator is rounded to fp16 after every block of 16 keys",
    "narrow_accumulation")};
const RegisterKernel kNaiveFp16ValueSumInFp16{mutant_of<"naive_fp16", Fault::kValueSumInFp16>(
    "naive_fp16_value_sum_in_fp16", "naive_fp16 that sums P V in fp16", "narrow_accumulation", "SageAttention #93")};
const RegisterKernel kFa3E4m3PromotionMissing{mutant_of<"fa3_e4m3", Fault::kPromotionMissing>(
    "fa3_e4m3_promotion_missing", "fa3_e4m3 whose P V is one chain of 13-bit accumulators", "narrow_accumulation",
    "DeepGEMM #37")};
const RegisterKernel kSplitBf16PartialLseInBf16{mutant_of<"split_bf16", Fault::kPartialLseInBf16>(
    "split_bf16_partial_lse_in_bf16", "split_bf16 that stores the LSE of its splits in bf16", "narrow_accumulation")};
const RegisterKernel kSplitBf16PartialOutputInBf16{mutant_of<"split_bf16", Fault::kPartialOutputInBf16>(
    "split_bf16_partial_output_in_bf16", "split_bf16 that stores the O of its splits in bf16", "narrow_accumulation")};
const RegisterKernel kMergeTwoPassFp32LseInBf16{mutant_of<"merge_two_pass_fp32", Fault::kPartialLseInBf16>(
    "merge_two_pass_fp32_lse_in_bf16", "merge_two_pass_fp32 that reads the LSEs of its parts as bf16",
    "narrow_accumulation")};
const RegisterKernel kMergeTwoPassFp32PartsInBf16{mutant_of<"merge_two_pass_fp32", Fault::kPartialOutputInBf16>(
    "merge_two_pass_fp32_parts_in_bf16", "merge_two_pass_fp32 that reads the O of its parts as bf16",
    "narrow_accumulation")};
const RegisterKernel kMergePairwiseBf16StateInOutputFormat{
    mutant_of<"merge_pairwise_bf16", Fault::kStateInOutputFormat>(
        "merge_pairwise_bf16_state_in_output_format", "merge_pairwise_bf16 that keeps O in bf16 from part to part",
        "narrow_accumulation", "FlagGems #5876")};
const RegisterKernel kSplitFp16LseInFp16{mutant_of<"split_fp16", Fault::kLseInFp16>(
    "split_fp16_lse_in_fp16", "split_fp16 that rounds the LSE to fp16", "narrow_accumulation")};
const RegisterKernel kPagedFlashinferBf16ReciprocalInBf16{mutant_of<"paged_flashinfer_bf16", Fault::kReciprocalInBf16>(
    "paged_flashinfer_bf16_reciprocal_in_bf16", "paged_flashinfer_bf16 that multiplies O by 1 / l rounded to bf16",
    "narrow_accumulation", "IRON #139")};
const RegisterKernel kFa2Bf16CastBeforeScale{mutant_of<"fa2_bf16", Fault::kCastBeforeScale>(
    "fa2_bf16_cast_before_scale", "fa2_bf16 that rounds O to bf16 before v_scale", "narrow_accumulation",
    "pytorch #134112")};
const RegisterKernel kFa2Bf16OutputTruncated{mutant_of<"fa2_bf16", Fault::kOutputTruncated>(
    "fa2_bf16_output_truncated", "fa2_bf16 that truncates its output instead of rounding it", "narrow_accumulation")};

}  // namespace
}  // namespace assay
