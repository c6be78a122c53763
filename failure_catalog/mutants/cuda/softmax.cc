// Bugs of device code that a memory checker finds, planted in the softmax on the GPU.
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kOverrun{mutant_of<"softmax_cuda_fp32", Fault::kDeviceOverrun>(
    "softmax_cuda_fp32_overrun", "softmax_cuda_fp32 that writes one element behind the last row", "")};
const RegisterKernel kUnset{mutant_of<"softmax_cuda_fp32", Fault::kWorkspaceUnset>(
    "softmax_cuda_fp32_workspace_unset", "softmax_cuda_fp32 that takes its workspace for zeros", "")};
const RegisterKernel kBarrier{mutant_of<"softmax_cuda_fp32", Fault::kBarrierMissing>(
    "softmax_cuda_fp32_barrier_missing", "softmax_cuda_fp32 whose row sum is reduced without barriers", "")};

}  // namespace
}  // namespace assay
