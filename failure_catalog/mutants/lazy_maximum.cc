// FlashAttention-3 tiles in e4m3 that raise the maximum lazily though P's offset leaves no room (numerics.md 1.3
// and 2.13, "FA4 stale max saturating P", S19): P reaches 2^12, saturates at 448 for P V and not for l, so that the LSE
// is right.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"fa3_e4m3", Fault::kLazyMaximum>(
    "fa3_e4m3_lazy_maximum", "fa3_e4m3 that does not raise the maximum by less than 2^4", "")};

}  // namespace
}  // namespace assay
