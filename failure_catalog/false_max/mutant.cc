// Kernels with a finite number where -inf belongs.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFalseMaxMutant{mutant_of<"fa2_bf16", Fault::kFalseMax>(
    "fa2_bf16_false_max",
    "fa2_bf16 whose running maximum starts at -5e4 in raw scores: zero rows where every score lies below", "false_max",
    "flashinfer #4267")};
const RegisterKernel kOwnMaximumFloorMutant{mutant_of<"fa1_bf16", Fault::kOwnMaximumFloor>(
    "fa1_bf16_false_max", "fa1_bf16 whose common maximum is at least -1e4 in raw scores", "false_max",
    "flashinfer #4450")};
const RegisterKernel kMaskFilledMutant{mutant_of<"naive_bf16", Fault::kMaskFilled>(
    "naive_bf16_mask_filled", "naive_bf16 whose masked keys have the logit -1e4", "false_max", "lattice #373")};
const RegisterKernel kRowMaskFilledMutant{mutant_of<"softmax_two_pass_fp32", Fault::kRowMaskFilled>(
    "softmax_two_pass_fp32_mask_filled", "softmax_two_pass_fp32 whose masked elements have the logit -1e4", "false_max",
    "transformers #18185")};
const RegisterKernel kOnlineMaximumFloorMutant{mutant_of<"softmax_online_fp32", Fault::kOnlineMaximumFloor>(
    "softmax_online_fp32_false_max", "softmax_online_fp32 whose running maximum is at least -1e4 in x", "false_max")};
const RegisterKernel kMergeMaximumFloorMutant{mutant_of<"merge_two_pass_fp32", Fault::kMergeMaximumFloor>(
    "merge_two_pass_fp32_false_max", "merge_two_pass_fp32 whose largest LSE is at least -1e4", "false_max")};

}  // namespace
}  // namespace assay
