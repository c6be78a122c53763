// Kernels with an intermediate of fp16's range.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kRawScoreRangeMutant{mutant_of<"naive_fp16", Fault::kRawScoreRange>(
    "naive_fp16_raw_score_range", "naive_fp16 whose scores are infinite beyond 65504 before they are scaled",
    "intermediate_overflow", "pytorch #119131")};
const RegisterKernel kAccumulatorRangeMutant{mutant_of<"fa2_fp16", Fault::kAccumulatorRange>(
    "fa2_fp16_accumulator_range",
    "fa2_fp16 whose accumulator of P V is infinite beyond 65504, before the division by the row sum",
    "intermediate_overflow", "llama.cpp #13975")};
const RegisterKernel kFoldedQueryRangeMutant{mutant_of<"fa3_e4m3", Fault::kFoldedQueryRange>(
    "fa3_e4m3_folded_query_range", "fa3_e4m3 with scale and factors folded into q, infinite beyond 65504",
    "intermediate_overflow", "onnxruntime #32515")};
const RegisterKernel kScaledScoreRangeMutant{mutant_of<"softmax_two_pass_fp16", Fault::kScaledScoreRange>(
    "softmax_two_pass_fp16_scaled_score_range", "softmax_two_pass_fp16 whose scale x is infinite beyond 65504",
    "intermediate_overflow", "llama.cpp #8412")};
const RegisterKernel kMergedSumRangeMutant{mutant_of<"merge_two_pass_fp16", Fault::kMergedSumRange>(
    "merge_two_pass_fp16_merged_sum_range",
    "merge_two_pass_fp16 whose sum of weighted parts is infinite beyond 65504, before its division",
    "intermediate_overflow")};

}  // namespace
}  // namespace assay
