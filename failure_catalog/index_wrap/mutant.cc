// Kernels in which the product of an index and a stride wraps, at a size that small cases reach.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kPagedVllmBf16KeyOffsetWraps{mutant_of<"paged_vllm_bf16", Fault::kKeyOffsetWraps>(
    "paged_vllm_bf16_key_offset_wraps", "paged_vllm_bf16 whose offsets of K wrap at 2^16", "index_wrap",
    "vllm #47671")};
const RegisterKernel kFa2Bf16ValueOffsetWraps{mutant_of<"fa2_bf16", Fault::kValueOffsetWraps>(
    "fa2_bf16_value_offset_wraps", "fa2_bf16 whose offsets of V wrap at 2^15", "index_wrap",
    "flash-linear-attention #1080")};
const RegisterKernel kFa1Bf16QueryOffsetWraps{mutant_of<"fa1_bf16", Fault::kQueryOffsetWraps>(
    "fa1_bf16_query_offset_wraps", "fa1_bf16 whose offsets of Q wrap at 2^15", "index_wrap", "Liger-Kernel #1483")};
const RegisterKernel kNaiveFp16MaskOffsetWraps{mutant_of<"naive_fp16", Fault::kMaskOffsetWraps>(
    "naive_fp16_mask_offset_wraps", "naive_fp16 whose offsets of a boolean mask wrap at 2^15", "index_wrap",
    "llama.cpp #24912")};

}  // namespace
}  // namespace assay
