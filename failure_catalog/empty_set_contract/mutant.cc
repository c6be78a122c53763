// Kernels with values of their own for rows without a key.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kEmptyRowMeanMutant{mutant_of<"fa2_bf16", Fault::kEmptyRowMean>(
    "fa2_bf16_empty_row_mean", "fa2_bf16 whose rows without a key are the mean of V", "empty_set_contract",
    "onnxruntime #28958")};
const RegisterKernel kEmptyLsePlusInfMutant{mutant_of<"fa2_fp16", Fault::kEmptyLsePlusInf>(
    "fa2_fp16_empty_lse_other_sign", "fa2_fp16 whose LSE of an empty row has the other sign", "empty_set_contract",
    "vllm #15492")};
const RegisterKernel kEmptyLseFiniteMutant{mutant_of<"paged_flashinfer_bf16", Fault::kEmptyLseFinite>(
    "paged_flashinfer_bf16_empty_lse_finite", "paged_flashinfer_bf16 whose LSE of an empty row is -5e4",
    "empty_set_contract", "flashinfer #4452")};
const RegisterKernel kEmptyRowUniformMutant{mutant_of<"softmax_two_pass_bf16", Fault::kEmptyRowUniform>(
    "softmax_two_pass_bf16_empty_row_uniform", "softmax_two_pass_bf16 whose rows without a key are 1 / n",
    "empty_set_contract", "d2l-en #2423")};
const RegisterKernel kEmptyMergeLseMutant{mutant_of<"merge_two_pass_bf16", Fault::kEmptyMergeLse>(
    "merge_two_pass_bf16_empty_lse_zero", "merge_two_pass_bf16 whose LSE of rows without a part is 0",
    "empty_set_contract")};

}  // namespace
}  // namespace assay
