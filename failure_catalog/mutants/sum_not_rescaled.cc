// Online softmax whose running sum keeps its old scale when the maximum rises.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kMutant{mutant_of<"softmax_online_fp32", Fault::kSumNotRescaled>(
    "softmax_online_fp32_sum_not_rescaled",
    "softmax_online_fp32 whose running sum keeps its old scale when the maximum rises", "")};

}  // namespace
}  // namespace assay
