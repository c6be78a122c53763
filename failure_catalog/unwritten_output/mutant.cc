// Kernels that leave a part of their outputs as it was.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kOddRowUnstoredMutant{mutant_of<"fa2_bf16", Fault::kOddRowUnstored>(
    "fa2_bf16_odd_row_unstored", "fa2_bf16 that stores rows in pairs: the last row of an odd number is left",
    "unwritten_output")};
const RegisterKernel kEmptyRowUnstoredMutant{mutant_of<"split_fp16", Fault::kEmptyRowUnstored>(
    "split_fp16_empty_row_unstored", "split_fp16 that leaves rows without a key early", "unwritten_output",
    "flashinfer #363")};
const RegisterKernel kOddHeadUnstoredMutant{mutant_of<"naive_bf16", Fault::kOddHeadUnstored>(
    "naive_bf16_odd_head_unstored", "naive_bf16 that computes heads in pairs: the last head of an odd number is left",
    "unwritten_output", "flash-linear-attention #1029")};
const RegisterKernel kTailColumnsUnstoredMutant{mutant_of<"softmax_two_pass_fp16", Fault::kTailColumnsUnstored>(
    "softmax_two_pass_fp16_tail_columns_unstored",
    "softmax_two_pass_fp16 that stores y in vectors of 4: columns behind the last whole one are left",
    "unwritten_output")};
const RegisterKernel kTailChannelsUnstoredMutant{mutant_of<"merge_pairwise_fp16", Fault::kTailChannelsUnstored>(
    "merge_pairwise_fp16_tail_channels_unstored",
    "merge_pairwise_fp16 that stores o in vectors of 16: channels behind the last whole one are left",
    "unwritten_output")};

}  // namespace
}  // namespace assay
