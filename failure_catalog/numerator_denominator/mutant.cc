// P V and the row sum that take different P: clipped, underflown or rounded in one of them. The lazy maximum of e4m3
// lets P reach 2^12, which saturates at 448 for P V and not for l (numerics.md 1.3 and 2.13).
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa3E4m3LazyMaximum{mutant_of<"fa3_e4m3", Fault::kLazyMaximum>(
    "fa3_e4m3_lazy_maximum", "fa3_e4m3 that does not raise the maximum by less than 2^4", "numerator_denominator",
    "flash-attention #2717")};
const RegisterKernel kFa3E4m3OffsetDropped{mutant_of<"fa3_e4m3", Fault::kOffsetDropped>(
    "fa3_e4m3_offset_dropped", "fa3_e4m3 that rounds P without its offset: weights below 2^-10 vanish",
    "numerator_denominator", "FlyDSL #1020")};
const RegisterKernel kFa3E4m3SingleOffsetTooLarge{mutant_of<"fa3_e4m3_single", Fault::kOffsetTooLarge>(
    "fa3_e4m3_single_offset_too_large",
    "fa3_e4m3_single that rounds P at twice its offset: weights above 7/8 are clipped", "numerator_denominator",
    "flash-attention #2577")};
const RegisterKernel kNaiveBf16WeightsInBf16{mutant_of<"naive_bf16", Fault::kWeightsInBf16>(
    "naive_bf16_weights_in_bf16", "naive_bf16 whose P V takes P rounded to bf16 and whose l does not",
    "numerator_denominator", "flash-attention #2721")};
const RegisterKernel kFa2Bf16PTruncated{mutant_of<"fa2_bf16", Fault::kTruncatedP>(
    "fa2_bf16_p_truncated", "fa2_bf16 that truncates P instead of rounding it", "numerator_denominator")};
const RegisterKernel kFa2Bf16SumOfRoundedP{mutant_of<"fa2_bf16", Fault::kSumOfRoundedP>(
    "fa2_bf16_sum_of_rounded_p", "fa2_bf16 whose row sum adds P rounded to bf16", "numerator_denominator")};

}  // namespace
}  // namespace assay
