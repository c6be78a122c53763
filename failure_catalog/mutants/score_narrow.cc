// FlashAttention-2 tiles that store S in 16 bits while the declaration says fp32 (numerics.md 2.13, "S rounded to bf16
// / fp16").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kBf16{
    mutant_of<"fa2_bf16", Fault::kScoreInBf16>("fa2_bf16_score_in_bf16", "fa2_bf16 that stores S in bf16", "")};
const RegisterKernel kFp16{
    mutant_of<"fa2_bf16", Fault::kScoreInFp16>("fa2_bf16_score_in_fp16", "fa2_bf16 that stores S in fp16", "")};

}  // namespace
}  // namespace assay
