// Split kernels and merges that combine partial results of the wrong row, or not all of them.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kSplitBf16BatchFolded{mutant_of<"split_bf16", Fault::kBatchFolded>(
    "split_bf16_batch_folded", "split_bf16 that merges the splits of two or more queries from the first sequence",
    "reduce_row_fold", "vllm-flash-attention #176")};
const RegisterKernel kPagedSplitBf16PartialLseOfFirstRow{mutant_of<"paged_split_bf16", Fault::kPartialLseOfFirstRow>(
    "paged_split_bf16_partial_lse_of_first_row",
    "paged_split_bf16 whose rows share the LSE of the first one in every split", "reduce_row_fold", "vllm #52879")};
const RegisterKernel kSplitFp16PartialOfNextRow{mutant_of<"split_fp16", Fault::kPartialOfNextRow>(
    "split_fp16_partial_of_next_row", "split_fp16 that takes O of the last split from the next row",
    "reduce_row_fold")};
const RegisterKernel kMergeTwoPassFp32PartsBeyondWidth{mutant_of<"merge_two_pass_fp32", Fault::kPartsBeyondWidth>(
    "merge_two_pass_fp32_parts_beyond_width", "merge_two_pass_fp32 that merges as many parts as there are channels",
    "reduce_row_fold", "llama.cpp #13852")};

}  // namespace
}  // namespace assay
