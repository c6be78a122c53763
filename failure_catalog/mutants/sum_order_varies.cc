// Softmax whose row sum is added up in another order in every other run, as with atomic additions: each run lies within
// the bound, and only a comparison of runs shows it.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"softmax_online_fp32", Fault::kSumOrderVaries>(
    "softmax_online_fp32_sum_order_varies", "softmax_online_fp32 whose row sums depend on the run", "")};

}  // namespace
}  // namespace assay
