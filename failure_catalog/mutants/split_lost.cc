// Split-KV decoding and a merge that leave out the last part (numerics.md 2.13, "one of 8 splits lost").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kSplit{mutant_of<"split_bf16", Fault::kSplitLost>(
    "split_bf16_split_lost", "split_bf16 that leaves out the last split of each sequence with two or more", "")};
const RegisterKernel kMerge{mutant_of<"merge_two_pass_fp32", Fault::kSplitLost>(
    "merge_two_pass_fp32_part_lost", "merge_two_pass_fp32 that leaves out the last of two or more parts", "")};

}  // namespace
}  // namespace assay
