// Kernels that subtract an empty extent's maximum from itself, or divide by its sum.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kNanEmptyExtentMutant{mutant_of<"fa2_bf16", Fault::kNanEmptyExtent>(
    "fa2_bf16_nan_empty_extent",
    "fa2_bf16 whose shift by the maximum is not guarded: NaN where a row has no admissible key in its first tile",
    "nan_empty_extent", "flashinfer #4401")};
const RegisterKernel kEmptyRowDividedMutant{mutant_of<"naive_bf16", Fault::kEmptyRowDivided>(
    "naive_bf16_empty_row_divided", "naive_bf16 that normalises rows without a key: 0 / 0", "nan_empty_extent",
    "burn #4694")};
const RegisterKernel kOwnTileUnguardedMutant{mutant_of<"fa1_bf16", Fault::kOwnTileUnguarded>(
    "fa1_bf16_own_tile_unguarded",
    "fa1_bf16 that scales an empty key tile to the common maximum: NaN where the first tiles of a row are empty",
    "nan_empty_extent", "pytorch #130014")};
const RegisterKernel kEmptySplitsMergedMutant{mutant_of<"split_bf16", Fault::kEmptySplitsMerged>(
    "split_bf16_empty_splits_merged", "split_bf16 that merges rows whose splits are all empty: (-inf) - (-inf)",
    "nan_empty_extent", "aiter #4420")};
const RegisterKernel kEmptyStepUnguardedMutant{mutant_of<"softmax_online_fp32", Fault::kEmptyStepUnguarded>(
    "softmax_online_fp32_empty_step_unguarded",
    "softmax_online_fp32 that rescales its sum in empty tiles: NaN where the first tile of a row is empty",
    "nan_empty_extent", "flash-attention #1930")};
const RegisterKernel kEmptySumDividedMutant{mutant_of<"softmax_two_pass_bf16", Fault::kEmptySumDivided>(
    "softmax_two_pass_bf16_empty_sum_divided", "softmax_two_pass_bf16 that normalises rows without a key: 0 / 0",
    "nan_empty_extent", "pytorch #103749")};
const RegisterKernel kScaleAfterFillMutant{mutant_of<"softmax_two_pass_fp32", Fault::kScaleAfterFill>(
    "softmax_two_pass_fp32_scale_after_fill",
    "softmax_two_pass_fp32 that fills masked scores with -inf before it scales: NaN at scale 0, +inf below",
    "nan_empty_extent", "flash-attention #1461")};
const RegisterKernel kMergeEmptyUnguardedMutant{mutant_of<"merge_pairwise_bf16", Fault::kMergeEmptyUnguarded>(
    "merge_pairwise_bf16_empty_unguarded",
    "merge_pairwise_bf16 without a guard for empty parts: (-inf) - (-inf) where the first is", "nan_empty_extent",
    "flashinfer #4051")};
const RegisterKernel kEmptyPartsWeightedMutant{mutant_of<"merge_two_pass_fp16", Fault::kEmptyPartsWeighted>(
    "merge_two_pass_fp16_empty_parts_weighted",
    "merge_two_pass_fp16 that weighs parts of rows where all are empty: (-inf) - (-inf)", "nan_empty_extent",
    "vllm #39148")};

}  // namespace
}  // namespace assay
