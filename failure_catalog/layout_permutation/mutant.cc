// Kernels that read the right numbers in the wrong places.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFactorOfQueryHeadMutant{mutant_of<"fa3_e4m3", Fault::kFactorOfQueryHead>(
    "fa3_e4m3_factor_of_query_head", "fa3_e4m3 that takes the factor of V of key head h mod hkv",
    "layout_permutation")};
const RegisterKernel kFactorOfFirstBlockMutant{mutant_of<"naive_e4m3", Fault::kFactorOfFirstBlock>(
    "naive_e4m3_factor_of_first_block", "naive_e4m3 that takes the factors of the first block of tokens for all",
    "layout_permutation", "TIRx-kernels #5")};
const RegisterKernel kFactorPer128Mutant{mutant_of<"naive_e5m2", Fault::kFactorPer128>(
    "naive_e5m2_factor_per_128", "naive_e5m2 with one factor per 128 tokens, whatever the case says",
    "layout_permutation", "llm-awq #21")};
const RegisterKernel kSplitLanesSwappedMutant{mutant_of<"paged_vllm_bf16", Fault::kSplitLanesSwapped>(
    "paged_vllm_bf16_split_lanes_swapped", "paged_vllm_bf16 that reads K split in lanes lane by lane",
    "layout_permutation", "pie #491")};
const RegisterKernel kPairsHalvedMutant{mutant_of<"fa2_bf16", Fault::kPairsHalved>(
    "fa2_bf16_pairs_halved", "fa2_bf16 that reads channel pairs of K from its two halves", "layout_permutation",
    "vllm #49323")};
const RegisterKernel kColumnsSwizzledMutant{mutant_of<"fa4_bf16", Fault::kColumnsSwizzled>(
    "fa4_bf16_columns_swizzled", "fa4_bf16 that stores neighbouring channels of O at each other's place",
    "layout_permutation")};
const RegisterKernel kFa2Bf16ValueDescaleOfFirstHead{mutant_of<"fa2_bf16", Fault::kValueDescaleOfFirstHead>(
    "fa2_bf16_value_descale_of_first_head", "fa2_bf16 that applies the v_scale of head 0 to all heads",
    "layout_permutation", "sgl-kernel-xpu #252")};

}  // namespace
}  // namespace assay
