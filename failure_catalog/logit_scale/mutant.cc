// Logits under another scale: scaled tensors without their factor, the scale of another head dimension, a coarse log2
// e. A scale rounded to bf16 is off by up to 2e-3, log2(e) written as 1.443 by 2e-4 (numerics.md 2.13, "softmax scale
// off").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16ScaleOff1e3{mutant_of<"fa2_bf16", Fault::kScaleOff, 1000>(
    "fa2_bf16_scale_off_1e-3", "fa2_bf16 whose softmax scale is too large by 1e-3", "logit_scale")};
const RegisterKernel kFa2Bf16ScaleOff1e4{mutant_of<"fa2_bf16", Fault::kScaleOff, 100>(
    "fa2_bf16_scale_off_1e-4", "fa2_bf16 whose softmax scale is too large by 1e-4", "logit_scale")};
const RegisterKernel kSplitBf16ScaleOff1e4{mutant_of<"split_bf16", Fault::kScaleOff, 100>(
    "split_bf16_scale_off_1e-4", "split_bf16 whose softmax scale is too large by 1e-4", "logit_scale")};
const RegisterKernel kFa3E4m3KeyDescaleDropped{mutant_of<"fa3_e4m3", Fault::kKeyDescaleDropped>(
    "fa3_e4m3_key_descale_dropped", "fa3_e4m3 that takes k_scale for 1", "logit_scale", "vllm #42580")};
const RegisterKernel kNaiveE4m3KeyDescaleTwice{mutant_of<"naive_e4m3", Fault::kKeyDescaleTwice>(
    "naive_e4m3_key_descale_twice", "naive_e4m3 that multiplies k_scale in twice", "logit_scale")};
const RegisterKernel kFa3E4m3SingleQueryDescaleDropped{mutant_of<"fa3_e4m3_single", Fault::kQueryDescaleDropped>(
    "fa3_e4m3_single_query_descale_dropped", "fa3_e4m3_single that takes q_scale for 1", "logit_scale", "vllm #37135")};
const RegisterKernel kFa2Bf16ScaleOfPaddedDim{mutant_of<"fa2_bf16", Fault::kScaleOfPaddedDim>(
    "fa2_bf16_scale_of_padded_dim", "fa2_bf16 whose scale is 1 / sqrt of the padded head dimension", "logit_scale",
    "ipex-llm #12619")};
const RegisterKernel kNaiveBf16ScaleConstant{mutant_of<"naive_bf16", Fault::kScaleConstant>(
    "naive_bf16_scale_constant", "naive_bf16 whose scale is 1 / sqrt(d), whatever is asked for", "logit_scale",
    "gemma-triton-flash-attn #6")};
const RegisterKernel kSplitFp16ScaleTwiceInShortTile{mutant_of<"split_fp16", Fault::kScaleTwiceInShortTile>(
    "split_fp16_scale_twice_in_short_tile", "split_fp16 that applies the scale twice in a tile that is not full",
    "logit_scale")};
const RegisterKernel kSoftmaxOnlineFp32Log2eInBf16{mutant_of<"softmax_online_fp32", Fault::kLog2eInBf16>(
    "softmax_online_fp32_log2e_in_bf16", "softmax_online_fp32 whose log2 e is rounded to bf16", "logit_scale")};

}  // namespace
}  // namespace assay
