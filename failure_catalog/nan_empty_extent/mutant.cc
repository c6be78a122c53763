// FlashAttention-2 tiles that subtract a maximum of -inf from -inf.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kNanEmptyExtent>(
    "fa2_bf16_nan_empty_extent",
    "fa2_bf16 whose shift by the maximum is not guarded: NaN where a row has no admissible key in its first tile",
    "nan_empty_extent")};

}  // namespace
}  // namespace assay
