// Pairwise merge that does not ask whether a part is empty.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"merge_pairwise_bf16", Fault::kMergeEmptyUnguarded>(
    "merge_pairwise_bf16_empty_unguarded",
    "merge_pairwise_bf16 without a guard for empty parts: (-inf) - (-inf) where two in a row are", "")};

}  // namespace
}  // namespace assay
