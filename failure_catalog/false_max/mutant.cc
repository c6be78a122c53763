// FlashAttention-2 tiles whose running maximum starts at a finite sentinel.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa2_bf16", Fault::kFalseMax>(
    "fa2_bf16_false_max",
    "fa2_bf16 whose running maximum starts at -5e4 in raw scores: zero rows where every score lies below",
    "false_max")};

}  // namespace
}  // namespace assay
