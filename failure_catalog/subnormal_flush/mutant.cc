// FlashAttention-2 tiles that read and write subnormal numbers as zero.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kSubnormalFlush>(
    "fa2_bf16_subnormal_flush",
    "fa2_bf16 that flushes subnormal V and subnormal outputs to zero",
    "subnormal_flush")};

}  // namespace
}  // namespace assay
