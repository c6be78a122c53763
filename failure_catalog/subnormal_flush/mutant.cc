// Kernels that read or write subnormal numbers as zero.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kSubnormalFlushMutant{mutant_of<"fa2_bf16", Fault::kSubnormalFlush>(
    "fa2_bf16_subnormal_flush", "fa2_bf16 that flushes subnormal V and subnormal outputs to zero", "subnormal_flush")};
const RegisterKernel kSmallFactorFlushedMutant{mutant_of<"fa3_e4m3", Fault::kSmallFactorFlushed>(
    "fa3_e4m3_small_factor_flushed", "fa3_e4m3 that reads factors of V below fp16's smallest normal number as zero",
    "subnormal_flush", "1Cat-vLLM #222")};
const RegisterKernel kSubnormalCodesMutant{mutant_of<"naive_e4m3", Fault::kSubnormalCodes>(
    "naive_e4m3_subnormal_codes", "naive_e4m3 that reads the subnormal codes of e4m3 as zero", "subnormal_flush",
    "SuperNPUBench #49")};
const RegisterKernel kSubnormalYFlushedMutant{mutant_of<"softmax_two_pass_fp16", Fault::kSubnormalYFlushed>(
    "softmax_two_pass_fp16_subnormal_flush", "softmax_two_pass_fp16 that writes subnormal y as zero",
    "subnormal_flush")};
const RegisterKernel kSubnormalPartFlushedMutant{mutant_of<"merge_two_pass_fp16", Fault::kSubnormalPartFlushed>(
    "merge_two_pass_fp16_subnormal_flush", "merge_two_pass_fp16 that reads subnormal O as zero", "subnormal_flush")};

}  // namespace
}  // namespace assay
