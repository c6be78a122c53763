// Kernels whose bits depend on the run, in a fixed order of runs.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kSumOrderVariesMutant{mutant_of<"softmax_online_fp32", Fault::kSumOrderVaries>(
    "softmax_online_fp32_sum_order_varies", "softmax_online_fp32 whose row sums depend on the run", "race")};
const RegisterKernel kMergeOrderVariesMutant{mutant_of<"split_bf16", Fault::kMergeOrderVaries>(
    "split_bf16_merge_order_varies", "split_bf16 that merges its splits in another order every other run", "race")};
const RegisterKernel kStaleValueTileMutant{mutant_of<"fa2_bf16", Fault::kStaleValueTile>(
    "fa2_bf16_stale_value_tile", "fa2_bf16 that multiplies by the V of the tile before, every other run", "race",
    "TileOPs #1550")};
const RegisterKernel kStalePartLseMutant{mutant_of<"merge_pairwise_fp32", Fault::kStalePartLse>(
    "merge_pairwise_fp32_stale_part_lse",
    "merge_pairwise_fp32 that weighs a part by the LSE of the one before, every other run", "race", "sglang #37288")};

}  // namespace
}  // namespace assay
