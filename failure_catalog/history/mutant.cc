// Kernels that keep something of the call before.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kStaleLengthsMutant{mutant_of<"paged_vllm_bf16", Fault::kStaleLengths>(
    "paged_vllm_bf16_stale_lengths", "paged_vllm_bf16 with no more keys than the call before had", "history",
    "vllm #41841")};
const RegisterKernel kStaleTableMutant{mutant_of<"paged_split_bf16", Fault::kStaleTable>(
    "paged_split_bf16_stale_table", "paged_split_bf16 that follows the page table of the call before", "history",
    "sglang #27664")};
const RegisterKernel kStaleAccumulatorMutant{mutant_of<"merge_two_pass_fp32", Fault::kStaleAccumulator>(
    "merge_two_pass_fp32_stale_accumulator",
    "merge_two_pass_fp32 whose first row begins with the last row of the call before", "history")};

}  // namespace
}  // namespace assay
