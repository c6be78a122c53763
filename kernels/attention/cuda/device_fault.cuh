// Asks for planted faults in device code: constant false but in the sources of the mutant program.
#pragma once

#include "kernels/attention/cuda/device_fault.h"
#include "kernels/attention/cuda/element.cuh"

namespace assay::cuda {

#ifdef ASSAY_MUTANTS
/// Set before every launch of a mutant; each source has its own.
static __constant__ DeviceFault planted_on_device;
__device__ __forceinline__ bool faulty(DeviceFault fault) { return planted_on_device == fault; }
#else
__device__ constexpr bool faulty(DeviceFault) { return false; }
#endif

/// What faults store in bf16.
__device__ __forceinline__ float bf16_rounded(float x) { return __uint_as_float(Bf16::pack(x, 0.0F) << 16); }
__device__ __forceinline__ float bf16_truncated(float x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000U); }

}  // namespace assay::cuda
