// FlashAttention-2 tiles whose running maximum starts at a finite sentinel.
#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {
namespace {

const Kernel& base() { return *find_kernel("fa2_bf16"); }

const RegisterKernel kMutant{
    {.name = "fa2_bf16_false_max",
     .op = "attention",
     .summary = "fa2_bf16 whose running maximum starts at -5e4 in raw scores: zero rows where every score lies below",
     .formats = {Format::kBf16},
     .mutant = true,
     .expects = "false_max",
     .unsupported = [](const Params& params) { return base().unsupported(params); },
     .declared = [](const Params& params) { return base().declared(params); },
     .run =
         [](const Call& call) {
           const PlantFault fault(Fault::kFalseMax);
           return base().run(call);
         }}};

}  // namespace
}  // namespace assay
