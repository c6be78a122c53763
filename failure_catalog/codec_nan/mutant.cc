// Kernels whose casts to narrow formats make NaN.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kUnclampedPMutant{mutant_of<"fa3_e4m3", Fault::kUnclampedP>(
    "fa3_e4m3_unclamped_p", "fa3_e4m3 that raises its maximum lazily and does not clamp P: NaN where P passes 464",
    "codec_nan", "flashinfer #2639")};
const RegisterKernel kZeroChannelScaleMutant{mutant_of<"fa2_bf16", Fault::kZeroChannelScale>(
    "fa2_bf16_zero_channel_scale", "fa2_bf16 that scales V by the largest magnitude of its channel: 0 / 0", "codec_nan",
    "aiter #4289")};
const RegisterKernel kZeroRowScaleMutant{mutant_of<"fa4_fp16", Fault::kZeroRowScale>(
    "fa4_fp16_zero_row_scale", "fa4_fp16 that scales q by the largest magnitude of its row: 0 / 0", "codec_nan",
    "kernels-community #681")};

}  // namespace
}  // namespace assay
