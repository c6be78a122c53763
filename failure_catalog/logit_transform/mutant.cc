// Soft caps, ALiBi, masks and sinks that are left out, doubled, or applied in another order or frame.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16SoftcapOmitted{mutant_of<"fa2_bf16", Fault::kSoftcapOmitted>(
    "fa2_bf16_softcap_omitted", "fa2_bf16 without the soft cap", "logit_transform", "sgl-kernel-xpu #491")};
const RegisterKernel kSplitBf16SoftcapAfterMask{mutant_of<"split_bf16", Fault::kSoftcapAfterMask>(
    "split_bf16_softcap_after_mask", "split_bf16 that caps masked scores too, which then leak", "logit_transform",
    "flashinfer #350")};
const RegisterKernel kNaiveBf16SoftcapOfLog2{mutant_of<"naive_bf16", Fault::kSoftcapOfLog2>(
    "naive_bf16_softcap_of_log2", "naive_bf16 whose soft cap holds for the logit times log2 e", "logit_transform",
    "sgl-kernel-xpu #491")};
const RegisterKernel kFa4Bf16AlibiSign{mutant_of<"fa4_bf16", Fault::kAlibiSign>(
    "fa4_bf16_alibi_sign", "fa4_bf16 whose ALiBi distances count the other way", "logit_transform",
    "attention-gym #86")};
const RegisterKernel kPagedFlashinferBf16AlibiOffByOne{mutant_of<"paged_flashinfer_bf16", Fault::kAlibiOffByOne>(
    "paged_flashinfer_bf16_alibi_off_by_one", "paged_flashinfer_bf16 whose ALiBi distances are larger by one",
    "logit_transform", "vllm #945")};
const RegisterKernel kFa1Bf16SlopesFromFormula{mutant_of<"fa1_bf16", Fault::kSlopesFromFormula>(
    "fa1_bf16_slopes_from_formula", "fa1_bf16 whose ALiBi slopes are those of a power of two of heads",
    "logit_transform", "mlx #3071")};
const RegisterKernel kFa2Bf16MaskScaled{mutant_of<"fa2_bf16", Fault::kMaskScaled>(
    "fa2_bf16_mask_scaled", "fa2_bf16 that multiplies the additive mask by the softmax scale", "logit_transform")};
const RegisterKernel kFa2Bf16SinkOmitted{mutant_of<"fa2_bf16", Fault::kSinkOmitted>(
    "fa2_bf16_sink_omitted", "fa2_bf16 without the sink", "logit_transform", "sglang-jax #905")};
const RegisterKernel kPagedFlashinferBf16SinkOmitted{mutant_of<"paged_flashinfer_bf16", Fault::kSinkOmitted>(
    "paged_flashinfer_bf16_sink_omitted", "paged_flashinfer_bf16 without the sink", "logit_transform", "imp #1303")};
const RegisterKernel kFa4Bf16SinkScaled{mutant_of<"fa4_bf16", Fault::kSinkScaled>(
    "fa4_bf16_sink_scaled", "fa4_bf16 that multiplies the sink by the softmax scale", "logit_transform")};
const RegisterKernel kSplitBf16SinkInEverySplit{mutant_of<"split_bf16", Fault::kSinkInEverySplit>(
    "split_bf16_sink_in_every_split", "split_bf16 whose splits have the sink among their keys each",
    "logit_transform")};
const RegisterKernel kCascadeBf16SinkInEveryPart{mutant_of<"cascade_bf16", Fault::kSinkInEveryPart>(
    "cascade_bf16_sink_in_every_part", "cascade_bf16 whose two parts have the sink among their keys each",
    "logit_transform")};

}  // namespace
}  // namespace assay
