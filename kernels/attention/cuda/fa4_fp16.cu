// FlashAttention-4's numerics on the tile kernel, fp16.
#include "kernels/attention/cuda/fa4_launch.cuh"

namespace assay::cuda {

template void launch_fa4<Fp16, 64>(const ForwardParams&, CUstream_st*);
template void launch_fa4<Fp16, 128>(const ForwardParams&, CUstream_st*);

}  // namespace assay::cuda
