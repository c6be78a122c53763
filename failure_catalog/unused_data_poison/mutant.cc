// Kernels that multiply what nobody may use by zero.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kTailValuesLoadedMutant{mutant_of<"fa2_bf16", Fault::kTailValuesLoaded>(
    "fa2_bf16_tail_values_loaded", "fa2_bf16 that multiplies V behind the last key of padded batches by P = 0",
    "unused_data_poison", "flash-attention #1745")};
const RegisterKernel kPageTailLoadedMutant{mutant_of<"paged_vllm_bf16", Fault::kPageTailLoaded>(
    "paged_vllm_bf16_page_tail_loaded",
    "paged_vllm_bf16 that multiplies V in the unused slots of the last page by P = 0", "unused_data_poison",
    "flashinfer #942")};
const RegisterKernel kMaskedValueWeighedMutant{mutant_of<"naive_bf16", Fault::kMaskedValueWeighed>(
    "naive_bf16_masked_value_weighed", "naive_bf16 that multiplies V of masked keys by P = 0", "unused_data_poison",
    "vllm #30887")};
const RegisterKernel kMaskAddedMutant{mutant_of<"naive_fp16", Fault::kMaskAdded>(
    "naive_fp16_mask_added", "naive_fp16 whose mask adds -inf to the scores: NaN stays NaN", "unused_data_poison",
    "Wan2GP #1628")};
const RegisterKernel kMaskAddedInMaximumMutant{mutant_of<"softmax_online_bf16", Fault::kMaskAddedInMaximum>(
    "softmax_online_bf16_mask_added_in_maximum",
    "softmax_online_bf16 whose maximum sees masked elements plus -inf: NaN stays NaN", "unused_data_poison",
    "pytorch #101967")};
const RegisterKernel kEmptyPartMultipliedMutant{mutant_of<"merge_two_pass_bf16", Fault::kEmptyPartMultiplied>(
    "merge_two_pass_bf16_empty_part_multiplied", "merge_two_pass_bf16 that multiplies O of empty parts by 0",
    "unused_data_poison")};

}  // namespace
}  // namespace assay
