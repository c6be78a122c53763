// FlashAttention-2 tiles that read and write subnormal numbers as zero.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{{.name = "fa2_bf16_subnormal_flush",
                              .op = "attention",
                              .summary = "fa2_bf16 that flushes subnormal V and subnormal outputs to zero",
                              .formats = {Format::kBf16},
                              .mutant = true,
                              .expects = "subnormal_flush",
                              .unsupported = [](const Params& params) { return base().unsupported(params); },
                              .declared = [](const Params& params) { return base().declared(params); },
                              .run =
                                  [](const Call& call) {
                                    const PlantFault fault(Fault::kSubnormalFlush);
                                    return base().run(call);
                                  }}};

}  // namespace
}  // namespace assay
