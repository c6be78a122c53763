// Kernels whose query heads read the wrong kv head or query.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kNaiveBf16HeadsTiled{mutant_of<"naive_bf16", Fault::kHeadsTiled>(
    "naive_bf16_heads_tiled", "naive_bf16 that tiles kv heads instead of repeating each", "head_map", "onnx #7274")};
const RegisterKernel kFa2Bf16HeadGroupModulus{mutant_of<"fa2_bf16", Fault::kHeadGroupModulus>(
    "fa2_bf16_head_group_modulus", "fa2_bf16 that divides by the number of kv heads instead of the group", "head_map",
    "HipKittens #22")};
const RegisterKernel kFa4Bf16HeadZero{mutant_of<"fa4_bf16", Fault::kHeadZero>(
    "fa4_bf16_head_zero", "fa4_bf16 whose heads all read kv head 0", "head_map", "ONNXim #33")};
const RegisterKernel kSplitBf16GroupAboveEight{mutant_of<"split_bf16", Fault::kGroupAboveEight>(
    "split_bf16_group_above_eight",
    "split_bf16 that gives heads beyond the eighth of a group the query of eight before", "head_map",
    "TensorRT-LLM #6573")};
const RegisterKernel kFa1Bf16ValueOfNextHead{mutant_of<"fa1_bf16", Fault::kValueOfNextHead>(
    "fa1_bf16_value_of_next_head", "fa1_bf16 that takes values from the next kv head", "head_map")};

}  // namespace
}  // namespace assay
