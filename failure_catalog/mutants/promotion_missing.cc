// FlashAttention-3 tiles in e4m3 that never promote P V to fp32 while the declaration says each tile is
// (numerics.md 1.3 and 2.13, "promotion to fp32 missing", S20, S21).
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa3_e4m3", Fault::kPromotionMissing>(
    "fa3_e4m3_promotion_missing", "fa3_e4m3 whose P V is one chain of 13-bit accumulators", "")};

}  // namespace
}  // namespace assay
