// FlashAttention-2 tiles that subtract a maximum of -inf from -inf.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{
    {.name = "fa2_bf16_nan_empty_extent",
     .op = "attention",
     .summary =
         "fa2_bf16 whose shift by the maximum is not guarded: NaN where a row has no admissible key in its first tile",
     .formats = {Format::kBf16},
     .mutant = true,
     .expects = "nan_empty_extent",
     .unsupported = [](const Params& params) { return base().unsupported(params); },
     .declared = [](const Params& params) { return base().declared(params); },
     .run =
         [](const Call& call) {
           const PlantFault fault(Fault::kNanEmptyExtent);
           return base().run(call);
         }}};

}  // namespace
}  // namespace assay
