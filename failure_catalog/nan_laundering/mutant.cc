// Kernels that turn NaN into numbers.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kNanCodeDecodedMutant{mutant_of<"naive_e4m3", Fault::kNanCodeDecoded>(
    "naive_e4m3_nan_code_decoded", "naive_e4m3 that reads the NaN codes as +-480", "nan_laundering",
    "ram-coffers #716")};
const RegisterKernel kOutputClampedMutant{mutant_of<"naive_fp16", Fault::kOutputClamped>(
    "naive_fp16_output_clamped", "naive_fp16 that clamps O to the finite numbers, NaN to the largest",
    "nan_laundering")};
const RegisterKernel kNanKeyDroppedMutant{mutant_of<"softmax_online_fp32", Fault::kNanKeyDropped>(
    "softmax_online_fp32_nan_key_dropped", "softmax_online_fp32 that leaves out elements that are NaN",
    "nan_laundering", "lattice #740")};
const RegisterKernel kNanPartDroppedMutant{mutant_of<"merge_pairwise_bf16", Fault::kNanPartDropped>(
    "merge_pairwise_bf16_nan_part_dropped", "merge_pairwise_bf16 that takes a part whose LSE is NaN for empty",
    "nan_laundering")};

}  // namespace
}  // namespace assay
