// FlashAttention-2 tiles that rescale O by alpha rounded to bf16, and l by alpha (numerics.md 2.13, "alpha rounded to
// bf16 for O").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kAlphaInBf16>(
    "fa2_bf16_alpha_in_bf16", "fa2_bf16 whose rescaling factor of O is rounded to bf16", "")};

}  // namespace
}  // namespace assay
