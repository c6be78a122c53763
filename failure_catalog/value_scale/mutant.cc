// Values under another factor than theirs.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa3E4m3ValueDescaleDropped{mutant_of<"fa3_e4m3", Fault::kValueDescaleDropped>(
    "fa3_e4m3_value_descale_dropped", "fa3_e4m3 that takes v_scale for 1", "value_scale", "Megatron-Bridge #4155")};
const RegisterKernel kNaiveE4m3ValueDescaleOfKeys{mutant_of<"naive_e4m3", Fault::kValueDescaleOfKeys>(
    "naive_e4m3_value_descale_of_keys", "naive_e4m3 that reads k_scale in place of v_scale", "value_scale",
    "sglang #26852")};
const RegisterKernel kFa1Bf16ValueDescaleTwice{mutant_of<"fa1_bf16", Fault::kValueDescaleTwice>(
    "fa1_bf16_value_descale_twice", "fa1_bf16 that multiplies v_scale in twice", "value_scale")};

}  // namespace
}  // namespace assay
