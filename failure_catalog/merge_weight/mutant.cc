// Partial results weighed by another base, by nothing, or by LSEs of parts that have none.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kSplitBf16MergeBaseTwo{mutant_of<"split_bf16", Fault::kMergeBaseTwo>(
    "split_bf16_merge_base_two", "split_bf16 that weighs natural LSEs by powers of two", "merge_weight",
    "sglang #33064")};
const RegisterKernel kPagedSplitBf16PartialLseBaseTwo{mutant_of<"paged_split_bf16", Fault::kPartialLseBaseTwo>(
    "paged_split_bf16_partial_lse_base_two", "paged_split_bf16 whose splits hand over LSEs of base two", "merge_weight",
    "tokenspeed #571")};
const RegisterKernel kMergeTwoPassFp32OtherBase{mutant_of<"merge_two_pass_fp32", Fault::kMergeOtherBase>(
    "merge_two_pass_fp32_other_base", "merge_two_pass_fp32 that takes base two for e and e for two", "merge_weight",
    "vllm #43919")};
const RegisterKernel kFa4Bf16LseTimesLn2{mutant_of<"fa4_bf16", Fault::kLseTimesLn2>(
    "fa4_bf16_lse_times_ln2", "fa4_bf16 whose LSE is multiplied by ln 2", "merge_weight", "pytorch #181645")};
const RegisterKernel kSplitBf16EmptyPartCounted{mutant_of<"split_bf16", Fault::kEmptyPartCounted>(
    "split_bf16_empty_part_counted", "split_bf16 that counts splits without keys as ones of LSE 0", "merge_weight",
    "vllm #49294")};
const RegisterKernel kSplitFp16LseNotStored{mutant_of<"split_fp16", Fault::kLseNotStored>(
    "split_fp16_lse_not_stored", "split_fp16 whose splits have no LSE where the caller wants none", "merge_weight",
    "flashinfer #50")};
const RegisterKernel kMergePairwiseBf16LastPartOnly{mutant_of<"merge_pairwise_bf16", Fault::kLastPartOnly>(
    "merge_pairwise_bf16_last_part_only", "merge_pairwise_bf16 whose O is that of the last part", "merge_weight")};

}  // namespace
}  // namespace assay
