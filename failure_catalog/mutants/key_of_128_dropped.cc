// Tiles that mask the last of every 128 keys (numerics.md 2.13, "one key per 128-tile dropped", "one key per tile
// dropped"). A loop bound or a tile edge off by one in each tile of 128.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kBf16{mutant_of<"fa2_bf16", Fault::kKeyOf128Dropped>(
    "fa2_bf16_key_of_128_dropped", "fa2_bf16 that masks the last of every 128 keys", "")};
const RegisterKernel kE4m3{mutant_of<"fa3_e4m3", Fault::kKeyOf128Dropped>(
    "fa3_e4m3_key_of_128_dropped", "fa3_e4m3 that masks the last key of every full tile", "")};

}  // namespace
}  // namespace assay
