// FlashAttention-2 tiles and split-KV decoding that take the last key of a sequence for its padding.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kTiles{mutant_of<"fa2_bf16", Fault::kLastKeyDropped>(
    "fa2_bf16_last_key_dropped",
    "fa2_bf16 that leaves out the last key of each sequence longer than one",
    "")};
const RegisterKernel kSplit{mutant_of<"split_bf16", Fault::kLastKeyDropped>(
    "split_bf16_last_key_dropped", "split_bf16 that leaves out the last key of each sequence longer than one", "")};

}  // namespace
}  // namespace assay
