// FlashAttention-2 tiles that take the last key of a sequence for its padding.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{{.name = "fa2_bf16_last_key_dropped",
                              .op = "attention",
                              .summary = "fa2_bf16 that leaves out the last key of each sequence longer than one",
                              .formats = {Format::kBf16},
                              .mutant = true,
                              .expects = "",
                              .unsupported = [](const Params& params) { return base().unsupported(params); },
                              .declared = [](const Params& params) { return base().declared(params); },
                              .run =
                                  [](const Call& call) {
                                    const PlantFault fault(Fault::kLastKeyDropped);
                                    return base().run(call);
                                  }}};

}  // namespace
}  // namespace assay
