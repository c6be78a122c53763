// FlashAttention-2 tiles that take every exp2 from a cubic while ex2.approx is declared (numerics.md 2.13, "exp2
// degree-3 polynomial (8.8e-5) under a MUFU declaration"). FlashAttention-4 does this on purpose, and declares it.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kCubicExponentials>(
    "fa2_bf16_cubic_exponentials", "fa2_bf16 whose exp2 is a cubic with relative error 9e-5", "")};

}  // namespace
}  // namespace assay
