// Split-KV decoding and merges that hold partial LSE or partial O in bf16 (numerics.md 2.13, "Split merge: lse in
// bf16", "partials in bf16").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kLse{mutant_of<"split_bf16", Fault::kPartialLseInBf16>(
    "split_bf16_partial_lse_in_bf16", "split_bf16 that stores the LSE of its splits in bf16", "")};
const RegisterKernel kOutput{mutant_of<"split_bf16", Fault::kPartialOutputInBf16>(
    "split_bf16_partial_output_in_bf16", "split_bf16 that stores the O of its splits in bf16", "")};
const RegisterKernel kMergeLse{mutant_of<"merge_two_pass_fp32", Fault::kPartialLseInBf16>(
    "merge_two_pass_fp32_lse_in_bf16", "merge_two_pass_fp32 that reads the LSEs of its parts as bf16", "")};
const RegisterKernel kMergeOutput{mutant_of<"merge_two_pass_fp32", Fault::kPartialOutputInBf16>(
    "merge_two_pass_fp32_parts_in_bf16", "merge_two_pass_fp32 that reads the O of its parts as bf16", "")};

}  // namespace
}  // namespace assay
