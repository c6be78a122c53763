// FlashAttention-2 tiles whose causal and right window edges lie one key too far.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{{.name = "fa2_bf16_mask_shifted_by_one",
                              .op = "attention",
                              .summary = "fa2_bf16 whose rows see one key beyond the causal or right window edge",
                              .formats = {Format::kBf16},
                              .mutant = true,
                              .expects = "",
                              .unsupported = [](const Params& params) { return base().unsupported(params); },
                              .declared = [](const Params& params) { return base().declared(params); },
                              .run =
                                  [](const Call& call) {
                                    const PlantFault fault(Fault::kMaskShiftedByOne);
                                    return base().run(call);
                                  }}};

}  // namespace
}  // namespace assay
