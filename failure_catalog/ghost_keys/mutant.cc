// Kernels in which keys that do not exist take part (numerics.md 2.13, "zero-padded key leaks into l").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16PaddedKeyLeaks{mutant_of<"fa2_bf16", Fault::kPaddedKeyLeaks>(
    "fa2_bf16_padded_key_leaks",
    "fa2_bf16 that counts one key of zeros behind the last one where the last tile is not full", "ghost_keys")};
const RegisterKernel kSplitBf16PaddedKeyLeaks{mutant_of<"split_bf16", Fault::kPaddedKeyLeaks>(
    "split_bf16_padded_key_leaks",
    "split_bf16 that counts one key of zeros behind the last one where the last tile is not full", "ghost_keys")};
const RegisterKernel kFa1Fp16TailLanesCount{mutant_of<"fa1_fp16", Fault::kTailLanesCount>(
    "fa1_fp16_tail_lanes_count", "fa1_fp16 that counts all columns of the last tile where nothing is masked",
    "ghost_keys", "flashinfer #3716")};
const RegisterKernel kPagedFlashinferBf16PageTailCounts{mutant_of<"paged_flashinfer_bf16", Fault::kPageTailCounts>(
    "paged_flashinfer_bf16_page_tail_counts",
    "paged_flashinfer_bf16 that counts the unused slots of the last page in l", "ghost_keys")};
const RegisterKernel kFa2Fp16SumStartsAtOne{mutant_of<"fa2_fp16", Fault::kSumStartsAtOne>(
    "fa2_fp16_sum_starts_at_one", "fa2_fp16 whose running maximum starts at 0 and whose sum starts at 1",
    "ghost_keys")};
const RegisterKernel kNaiveBf16TailKeysRepeated{mutant_of<"naive_bf16", Fault::kTailKeysRepeated>(
    "naive_bf16_tail_keys_repeated", "naive_bf16 that repeats the last key up to a multiple of 4", "ghost_keys",
    "NNkernels.jl #16")};

}  // namespace
}  // namespace assay
