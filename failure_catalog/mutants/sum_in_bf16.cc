// FlashAttention-2 tiles that keep l in bf16 (numerics.md 2.13, "l in bf16").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kSumInBf16>(
    "fa2_bf16_sum_in_bf16", "fa2_bf16 that stores the row sum in bf16 after every key tile", "")};

}  // namespace
}  // namespace assay
