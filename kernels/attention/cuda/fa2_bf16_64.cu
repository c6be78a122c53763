// FlashAttention-2 forward, bf16, tiles of head size 64.
#include "kernels/attention/cuda/fa2_launch.cuh"

namespace assay::cuda {

template void launch_fa2<Bf16, 64>(const ForwardParams&, CUstream_st*);

}  // namespace assay::cuda
