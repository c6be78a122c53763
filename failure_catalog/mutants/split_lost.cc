// Split-KV decoding that does not merge the last split (numerics.md 2.13, "one of 8 splits lost").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"split_bf16", Fault::kSplitLost>(
    "split_bf16_split_lost", "split_bf16 that leaves out the last split of each sequence with two or more", "")};

}  // namespace
}  // namespace assay
