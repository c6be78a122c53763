// FlashAttention-2 tiles that truncate O to bf16 when storing (numerics.md 2.13, "output truncated instead of
// rounded").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kOutputTruncated>(
    "fa2_bf16_output_truncated", "fa2_bf16 that truncates its output instead of rounding it", "")};

}  // namespace
}  // namespace assay
