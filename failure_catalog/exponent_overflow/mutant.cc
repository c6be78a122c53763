// Kernels whose exponent is not at most zero.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kShiftRoundedTwiceMutant{mutant_of<"naive_bf16", Fault::kShiftRoundedTwice>(
    "naive_bf16_shift_rounded_twice", "naive_bf16 that shifts by one fma after the rounding of m log2 e",
    "exponent_overflow", "pytorch #121558")};
const RegisterKernel kNoShiftMutant{mutant_of<"naive_fp32", Fault::kNoShift>(
    "naive_fp32_no_shift", "naive_fp32 that subtracts no maximum", "exponent_overflow", "dynet #1525")};
const RegisterKernel kTailLaneScoredZeroMutant{mutant_of<"fa2_bf16", Fault::kTailLaneScoredZero>(
    "fa2_bf16_tail_lane_scored_zero",
    "fa2_bf16 whose columns behind the last key have score 0, and weight 0 after the exponential", "exponent_overflow",
    "pytorch #196678")};
const RegisterKernel kRowShiftRoundedTwiceMutant{mutant_of<"softmax_two_pass_fp32", Fault::kRowShiftRoundedTwice>(
    "softmax_two_pass_fp32_shift_rounded_twice",
    "softmax_two_pass_fp32 that shifts by one fma after the rounding of m log2 e", "exponent_overflow",
    "aotriton #54")};
const RegisterKernel kMergeWithoutMaxMutant{mutant_of<"merge_two_pass_bf16", Fault::kMergeWithoutMax>(
    "merge_two_pass_bf16_without_max",
    "merge_two_pass_bf16 that does not subtract the largest LSE: weights overflow beyond 88, vanish below -104",
    "exponent_overflow")};

}  // namespace
}  // namespace assay
