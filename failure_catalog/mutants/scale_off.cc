// FlashAttention-2 tiles and split-KV decoding whose softmax scale is off by a relative 1e-3 or 1e-4 (numerics.md 2.13,
// "softmax scale off"). A scale rounded to bf16 is off by up to 2e-3, log2(e) written as 1.443 by 2e-4.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kThousandth{mutant_of<"fa2_bf16", Fault::kScaleOff, 1000>(
    "fa2_bf16_scale_off_1e-3", "fa2_bf16 whose softmax scale is too large by 1e-3", "")};
const RegisterKernel kTenThousandth{mutant_of<"fa2_bf16", Fault::kScaleOff, 100>(
    "fa2_bf16_scale_off_1e-4", "fa2_bf16 whose softmax scale is too large by 1e-4", "")};
const RegisterKernel kSplit{mutant_of<"split_bf16", Fault::kScaleOff, 100>(
    "split_bf16_scale_off_1e-4", "split_bf16 whose softmax scale is too large by 1e-4", "")};

}  // namespace
}  // namespace assay
