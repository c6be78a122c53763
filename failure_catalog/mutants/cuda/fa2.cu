// FlashAttention-2 forward, bf16, tiles of head size 64, compiled with the faults of device_fault.h switched in.
#include "failure_catalog/mutants/cuda/fa2.h"
#include "kernels/attention/cuda/fa2_launch.cuh"

namespace assay::cuda {

/// A type of its own, so that no kernel of this source has the name of a sound one.
struct FaultyNumerics : Fa2Numerics<Bf16> {};

void launch_faulty_fa2(const ForwardParams& p, DeviceFault fault, CUstream_st* stream) {
  if (cudaMemcpyToSymbolAsync(planted_on_device, &fault, sizeof fault, 0, cudaMemcpyHostToDevice, stream) !=
      cudaSuccess)
    return;
  launch_tiles<ShapeFor<Bf16, 64>, FaultyNumerics, true>(p, stream);
}

}  // namespace assay::cuda
