// FlashAttention-2 tiles and split-KV decoding whose last tile lets one key of its padding into l (numerics.md 2.13,
// "zero-padded key leaks into l").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kTiles{mutant_of<"fa2_bf16", Fault::kPaddedKeyLeaks>(
    "fa2_bf16_padded_key_leaks",
    "fa2_bf16 that counts one key of zeros behind the last one where the last tile is not full", "")};
const RegisterKernel kSplit{mutant_of<"split_bf16", Fault::kPaddedKeyLeaks>(
    "split_bf16_padded_key_leaks",
    "split_bf16 that counts one key of zeros behind the last one where the last tile is not full", "")};

}  // namespace
}  // namespace assay
