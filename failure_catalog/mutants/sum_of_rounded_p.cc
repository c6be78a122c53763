// FlashAttention-2 tiles that sum P after its rounding while unrounded P is declared (numerics.md 2.13, "l summed from
// rounded P"). As accurate as the declared sum: what differs is the declaration.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kSumOfRoundedP>(
    "fa2_bf16_sum_of_rounded_p", "fa2_bf16 whose row sum adds P rounded to bf16", "")};

}  // namespace
}  // namespace assay
