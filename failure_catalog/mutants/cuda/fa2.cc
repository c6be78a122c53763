// Faults of FlashAttention-2 on the GPU, the device's counterparts of the host mutants.
#include "failure_catalog/mutants/cuda/fa2.h"

#include "kernels/attention/cuda/forward_call.h"
#include "kernels/mutant.h"
#include "kernels/run_error.h"

namespace assay::cuda {
namespace {

/// fa2_cuda_bf16 under one fault, with its contract and declaration; tiles of head size 64 only.
template <DeviceFault kFault>
Kernel fa2_mutant(std::string_view name, std::string_view summary) {
  return {.name = name,
          .op = {},
          .summary = summary,
          .formats = {},
          .mutant = true,
          .base = "fa2_cuda_bf16",
          .fault = fault_name<kFault>(),
          .unsupported = nullptr,
          .declared = nullptr,
          .run = [](const Call& host) {
            DeviceCall call(host);
            const ForwardParams p = forward_params(host, call);
            if (p.dim_qk > 64 || p.dim_v > 64) throw CannotRun("the mutants have tiles of head size 64 only");
            launch_faulty_fa2(p, kFault, call.stream());
            call.launched("the faulty attention kernel");
            return call.finish(tile_text(64));
          }};
}

const RegisterKernel kScaleOff{fa2_mutant<DeviceFault::kScaleOff>(
    "fa2_cuda_bf16_scale_off", "fa2_cuda_bf16 whose softmax scale is too large by 1e-3")};
const RegisterKernel kLastKeyDropped{fa2_mutant<DeviceFault::kLastKeyDropped>(
    "fa2_cuda_bf16_last_key_dropped", "fa2_cuda_bf16 that takes the last key for padding")};
const RegisterKernel kMaskShifted{fa2_mutant<DeviceFault::kMaskShifted>(
    "fa2_cuda_bf16_mask_shifted", "fa2_cuda_bf16 whose causal and right limits admit one key more")};
const RegisterKernel kGhostKey{fa2_mutant<DeviceFault::kGhostKey>(
    "fa2_cuda_bf16_ghost_key", "fa2_cuda_bf16 whose first padded column counts with logit 0 and V = 0")};
const RegisterKernel kWrongKvHead{fa2_mutant<DeviceFault::kWrongKvHead>(
    "fa2_cuda_bf16_wrong_kv_head", "fa2_cuda_bf16 whose query head h reads key head h mod hkv")};
const RegisterKernel kTailTileSkipped{fa2_mutant<DeviceFault::kTailTileSkipped>(
    "fa2_cuda_bf16_tail_tile_skipped", "fa2_cuda_bf16 that leaves out a last key tile that is not full")};
const RegisterKernel kFalseMax{fa2_mutant<DeviceFault::kFalseMax>(
    "fa2_cuda_bf16_false_max", "fa2_cuda_bf16 whose running maximum starts at -5e4 in raw scores")};
const RegisterKernel kAccumulatorNotRescaled{fa2_mutant<DeviceFault::kAccumulatorNotRescaled>(
    "fa2_cuda_bf16_accumulator_not_rescaled", "fa2_cuda_bf16 whose O keeps its old scale when the maximum rises")};
const RegisterKernel kSumNotRescaled{fa2_mutant<DeviceFault::kSumNotRescaled>(
    "fa2_cuda_bf16_sum_not_rescaled", "fa2_cuda_bf16 whose row sum keeps its old scale when the maximum rises")};
const RegisterKernel kAlphaInBf16{fa2_mutant<DeviceFault::kAlphaInBf16>(
    "fa2_cuda_bf16_alpha_in_bf16", "fa2_cuda_bf16 whose rescaling factor of O is rounded to bf16")};
const RegisterKernel kTruncatedP{
    fa2_mutant<DeviceFault::kTruncatedP>("fa2_cuda_bf16_p_truncated", "fa2_cuda_bf16 whose P is truncated to bf16")};
const RegisterKernel kSumInBf16{fa2_mutant<DeviceFault::kSumInBf16>(
    "fa2_cuda_bf16_sum_in_bf16", "fa2_cuda_bf16 whose row sum is rounded to bf16 with every key tile")};
const RegisterKernel kLseBase{fa2_mutant<DeviceFault::kLseBase>(
    "fa2_cuda_bf16_lse_base", "fa2_cuda_bf16 whose natural LSE adds the base-2 logarithm of the sum")};
const RegisterKernel kUnwrittenRow{fa2_mutant<DeviceFault::kUnwrittenRow>(
    "fa2_cuda_bf16_unwritten_row", "fa2_cuda_bf16 that does not store the last row of a sequence")};

}  // namespace
}  // namespace assay::cuda
