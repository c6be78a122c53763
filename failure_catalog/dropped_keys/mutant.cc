// Kernels that leave out the last key, one key of a tile, a tile, a split or a part (numerics.md 2.13).
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16LastKeyDropped{mutant_of<"fa2_bf16", Fault::kLastKeyDropped>(
    "fa2_bf16_last_key_dropped", "fa2_bf16 that leaves out the last key of each sequence longer than one",
    "dropped_keys")};
const RegisterKernel kSplitBf16LastKeyDropped{mutant_of<"split_bf16", Fault::kLastKeyDropped>(
    "split_bf16_last_key_dropped", "split_bf16 that leaves out the last key of each sequence longer than one",
    "dropped_keys")};
const RegisterKernel kFa2Bf16KeyOf128Dropped{mutant_of<"fa2_bf16", Fault::kKeyOf128Dropped>(
    "fa2_bf16_key_of_128_dropped", "fa2_bf16 that masks the last of every 128 keys", "dropped_keys")};
const RegisterKernel kFa3E4m3KeyOf128Dropped{mutant_of<"fa3_e4m3", Fault::kKeyOf128Dropped>(
    "fa3_e4m3_key_of_128_dropped", "fa3_e4m3 that masks the last key of every full tile", "dropped_keys")};
const RegisterKernel kSplitBf16SplitLost{mutant_of<"split_bf16", Fault::kSplitLost>(
    "split_bf16_split_lost", "split_bf16 that leaves out the last split of each sequence with two or more",
    "dropped_keys")};
const RegisterKernel kMergeTwoPassFp32PartLost{mutant_of<"merge_two_pass_fp32", Fault::kSplitLost>(
    "merge_two_pass_fp32_part_lost", "merge_two_pass_fp32 that leaves out the last of two or more parts",
    "dropped_keys")};
const RegisterKernel kFa2Fp16DiagonalTileSkipped{mutant_of<"fa2_fp16", Fault::kDiagonalTileSkipped>(
    "fa2_fp16_diagonal_tile_skipped", "fa2_fp16 that skips key tiles which a query tile sees in part", "dropped_keys",
    "openvino #35438")};
const RegisterKernel kFa4Bf16TilesStopAtDiagonal{mutant_of<"fa4_bf16", Fault::kTilesStopAtDiagonal>(
    "fa4_bf16_tiles_stop_at_diagonal", "fa4_bf16 that stops at the diagonal although the mask is not causal",
    "dropped_keys", "vllm #30974")};
const RegisterKernel kFa1Bf16WindowTailSliced{mutant_of<"fa1_bf16", Fault::kWindowTailSliced>(
    "fa1_bf16_window_tail_sliced",
    "fa1_bf16 that cuts off the keys in front of the last query's window for all queries", "dropped_keys",
    "ik_llama.cpp #2186")};
const RegisterKernel kCascadeBf16PrefixEdgeDropped{mutant_of<"cascade_bf16", Fault::kPrefixEdgeDropped>(
    "cascade_bf16_prefix_edge_dropped", "cascade_bf16 that leaves out the first key behind the shared prefix",
    "dropped_keys")};
const RegisterKernel kNaiveFp16TailOfFourSkipped{mutant_of<"naive_fp16", Fault::kTailOfFourSkipped>(
    "naive_fp16_tail_of_four_skipped", "naive_fp16 that leaves out the keys behind the last multiple of 4",
    "dropped_keys")};

}  // namespace
}  // namespace assay
