// FlashAttention-2 tiles that keep O in 16 bits (numerics.md 2.13, "O accumulator bf16 per tile / fp16 per MMA").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kBf16{mutant_of<"fa2_bf16", Fault::kAccumulatorInBf16>(
    "fa2_bf16_accumulator_in_bf16", "fa2_bf16 that stores O in bf16 after every key tile", "")};
const RegisterKernel kFp16{mutant_of<"fa2_bf16", Fault::kAccumulatorInFp16>(
    "fa2_bf16_accumulator_in_fp16", "fa2_bf16 whose P V accumulator is rounded to fp16 after every block of 16 keys",
    "")};

}  // namespace
}  // namespace assay
