// FlashAttention-2 tiles that rescale the row sum but not O when the maximum rises.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kAccumulatorNotRescaled>(
    "fa2_bf16_accumulator_not_rescaled",
    "fa2_bf16 whose O keeps its old scale when the maximum rises",
    "")};

}  // namespace
}  // namespace assay
