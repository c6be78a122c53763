// Running state that is not carried or rescaled from tile to tile, or in the frame of another maximum.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16AccumulatorNotRescaled{mutant_of<"fa2_bf16", Fault::kAccumulatorNotRescaled>(
    "fa2_bf16_accumulator_not_rescaled", "fa2_bf16 whose O keeps its old scale when the maximum rises", "state_frame")};
const RegisterKernel kSoftmaxOnlineFp32SumNotRescaled{mutant_of<"softmax_online_fp32", Fault::kSumNotRescaled>(
    "softmax_online_fp32_sum_not_rescaled",
    "softmax_online_fp32 whose running sum keeps its old scale when the maximum rises", "state_frame")};
const RegisterKernel kFa2Fp16SumNotRescaled{mutant_of<"fa2_fp16", Fault::kSumNotRescaled>(
    "fa2_fp16_sum_not_rescaled", "fa2_fp16 whose l keeps its old scale when the maximum rises", "state_frame")};
const RegisterKernel kPagedFlashinferBf16StateNotRescaled{mutant_of<"paged_flashinfer_bf16", Fault::kStateNotRescaled>(
    "paged_flashinfer_bf16_state_not_rescaled",
    "paged_flashinfer_bf16 whose O and l keep their old scale when the maximum rises", "state_frame")};
const RegisterKernel kSplitFp16RescaledTwice{mutant_of<"split_fp16", Fault::kRescaledTwice>(
    "split_fp16_rescaled_twice", "split_fp16 that rescales O twice when the maximum rises", "state_frame")};
const RegisterKernel kPagedVllmBf16TileMaximumOnly{mutant_of<"paged_vllm_bf16", Fault::kTileMaximumOnly>(
    "paged_vllm_bf16_tile_maximum_only", "paged_vllm_bf16 whose maximum is that of the last tile", "state_frame",
    "tilelang #1148")};
const RegisterKernel kFa2Fp16StaleMaximum{mutant_of<"fa2_fp16", Fault::kStaleMaximum>(
    "fa2_fp16_stale_maximum", "fa2_fp16 whose P of a tile is relative to the maximum before it", "state_frame")};
const RegisterKernel kFa1Bf16DividedEveryStep{mutant_of<"fa1_bf16", Fault::kDividedEveryStep>(
    "fa1_bf16_divided_every_step", "fa1_bf16 that divides O by l after every tile without its old l in front of it",
    "state_frame", "1bit-MONSTER #495")};
const RegisterKernel kFa1Fp16TileFrameKept{mutant_of<"fa1_fp16", Fault::kTileFrameKept>(
    "fa1_fp16_tile_frame_kept", "fa1_fp16 whose P V of a tile stays relative to the tile's own maximum", "state_frame",
    "TileOPs #239")};
const RegisterKernel kSoftmaxTwoPassBf16LastTileUnshifted{mutant_of<"softmax_two_pass_bf16", Fault::kLastTileUnshifted>(
    "softmax_two_pass_bf16_last_tile_unshifted",
    "softmax_two_pass_bf16 whose last 64 exponentials are of x, not of x - m", "state_frame", "tt-metal #51278")};

}  // namespace
}  // namespace assay
