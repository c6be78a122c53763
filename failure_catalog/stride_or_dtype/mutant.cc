// Kernels that take strides, a head dimension or a type for granted.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16ValuesContiguous{mutant_of<"fa2_bf16", Fault::kValuesContiguous>(
    "fa2_bf16_values_contiguous", "fa2_bf16 that reads V as contiguous", "stride_or_dtype", "FlagGems #5896")};
const RegisterKernel kFa4Bf16QueryContiguous{mutant_of<"fa4_bf16", Fault::kQueryContiguous>(
    "fa4_bf16_query_contiguous", "fa4_bf16 that reads Q as contiguous", "stride_or_dtype", "flash-attention #2666")};
const RegisterKernel kNaiveBf16OutputContiguous{mutant_of<"naive_bf16", Fault::kOutputContiguous>(
    "naive_bf16_output_contiguous", "naive_bf16 that writes O as contiguous", "stride_or_dtype", "flashinfer #3103")};
const RegisterKernel kFa1Bf16MaskReadAsHalf{mutant_of<"fa1_bf16", Fault::kMaskReadAsHalf>(
    "fa1_bf16_mask_read_as_half", "fa1_bf16 that reads the fp32 mask as bf16 numbers", "stride_or_dtype",
    "pytorch #191612")};
const RegisterKernel kFa2Fp16First64Lanes{mutant_of<"fa2_fp16", Fault::kFirst64Lanes>(
    "fa2_fp16_first_64_lanes", "fa2_fp16 whose scores take the first 64 channels", "stride_or_dtype", "triton #621")};

}  // namespace
}  // namespace assay
