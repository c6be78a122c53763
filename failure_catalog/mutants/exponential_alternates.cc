// FlashAttention-2 tiles whose exp2 is off by 1e-3, up and down in turn (numerics.md 2.13, "exp2 error 1e-3
// (alternating)"). An exp2 from a table or a short polynomial: wrong per key, right on the average, so that l hides it.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kExponentialAlternates, 1000>(
    "fa2_bf16_exponential_alternates",
    "fa2_bf16 whose exp2 is 1e-3 too large at even columns and too small at odd ones", "")};

}  // namespace
}  // namespace assay
