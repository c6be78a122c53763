// Kernels whose masks end, begin or align in the wrong place, or are not applied.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16MaskShiftedByOne{mutant_of<"fa2_bf16", Fault::kMaskShiftedByOne>(
    "fa2_bf16_mask_shifted_by_one", "fa2_bf16 whose rows see one key beyond the causal or right window edge",
    "mask_edge")};
const RegisterKernel kFa2Bf16MaskTopLeft{mutant_of<"fa2_bf16", Fault::kMaskTopLeft>(
    "fa2_bf16_mask_top_left", "fa2_bf16 that aligns masks to the first query and key", "mask_edge", "cutlass #2336")};
const RegisterKernel kSplitBf16DecodeTopLeft{mutant_of<"split_bf16", Fault::kDecodeTopLeft>(
    "split_bf16_decode_top_left", "split_bf16 that aligns masks to the first key where there is one query", "mask_edge",
    "onnxruntime #29020")};
const RegisterKernel kFa2Fp16PaddedLengthsInMask{mutant_of<"fa2_fp16", Fault::kPaddedLengthsInMask>(
    "fa2_fp16_padded_lengths_in_mask", "fa2_fp16 that aligns masks by the longest lengths of the batch", "mask_edge")};
const RegisterKernel kFa1Bf16WindowLeftWide{mutant_of<"fa1_bf16", Fault::kWindowLeftWide>(
    "fa1_bf16_window_left_wide", "fa1_bf16 whose window begins one key early", "mask_edge", "transformers #39408")};
const RegisterKernel kNaiveBf16WindowRowOff{mutant_of<"naive_bf16", Fault::kWindowRowOff>(
    "naive_bf16_window_row_off", "naive_bf16 whose window is that of the query before, for two or more queries",
    "mask_edge", "openvino #30714")};
const RegisterKernel kNaiveFp16WindowEndsOpen{mutant_of<"naive_fp16", Fault::kWindowEndsOpen>(
    "naive_fp16_window_ends_open", "naive_fp16 that leaves out the first key of the window", "mask_edge")};
const RegisterKernel kFa4Bf16CausalIgnored{mutant_of<"fa4_bf16", Fault::kCausalIgnored>(
    "fa4_bf16_causal_ignored", "fa4_bf16 that does not apply the causal mask", "mask_edge", "jax #19237")};
const RegisterKernel kFa2Fp16SegmentsIgnored{mutant_of<"fa2_fp16", Fault::kSegmentsIgnored>(
    "fa2_fp16_segments_ignored", "fa2_fp16 that does not apply segments", "mask_edge", "HunyuanVideo #310")};
const RegisterKernel kFa1Fp16MaskLengthMinusOne{mutant_of<"fa1_fp16", Fault::kMaskLengthMinusOne>(
    "fa1_fp16_mask_length_minus_one", "fa1_fp16 that hides one key more where a boolean mask hides the last",
    "mask_edge", "onnxruntime #27885")};
const RegisterKernel kFa1Bf16SequencesJoined{mutant_of<"fa1_bf16", Fault::kSequencesJoined>(
    "fa1_bf16_sequences_joined", "fa1_bf16 that takes the keys of a packed batch for one sequence", "mask_edge",
    "NeMo-RL #2105")};

}  // namespace
}  // namespace assay
