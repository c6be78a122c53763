// FlashAttention-2 tiles that rescale the row sum but not O when the maximum rises.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{{.name = "fa2_bf16_accumulator_not_rescaled",
                              .op = "attention",
                              .summary = "fa2_bf16 whose O keeps its old scale when the maximum rises",
                              .formats = {Format::kBf16},
                              .mutant = true,
                              .expects = "",
                              .unsupported = [](const Params& params) { return base().unsupported(params); },
                              .declared = [](const Params& params) { return base().declared(params); },
                              .run =
                                  [](const Call& call) {
                                    const PlantFault fault(Fault::kAccumulatorNotRescaled);
                                    return base().run(call);
                                  }}};

}  // namespace
}  // namespace assay
