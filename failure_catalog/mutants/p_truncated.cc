// FlashAttention-2 tiles that truncate P to bf16 (numerics.md 2.13, "P truncated instead of rounded").
// Keeping the upper half of the word is a conversion that is often written by hand.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kTruncatedP>(
    "fa2_bf16_p_truncated", "fa2_bf16 that truncates P instead of rounding it", "")};

}  // namespace
}  // namespace assay
