// FlashAttention-2 forward, fp16, tiles of head size 256.
#include "kernels/attention/cuda/fa2_launch.cuh"

namespace assay::cuda {

template void launch_fa2<Fp16, 256>(const ForwardParams&, CUstream_st*);

}  // namespace assay::cuda
