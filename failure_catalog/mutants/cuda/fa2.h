// The faulty launch of FlashAttention-2 on the device.
#pragma once

#include "kernels/attention/cuda/device_fault.h"
#include "kernels/attention/cuda/forward_params.h"

namespace assay::cuda {

/// As launch_fa2<Bf16, 64> with one fault. Both head sizes are at most 64.
void launch_faulty_fa2(const ForwardParams& p, DeviceFault fault, CUstream_st* stream);

}  // namespace assay::cuda
