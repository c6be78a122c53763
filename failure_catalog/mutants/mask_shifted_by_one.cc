// FlashAttention-2 tiles whose causal and right window edges lie one key too far.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kMaskShiftedByOne>(
    "fa2_bf16_mask_shifted_by_one",
    "fa2_bf16 whose rows see one key beyond the causal or right window edge",
    "")};

}  // namespace
}  // namespace assay
