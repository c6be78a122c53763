// launch_fa4 for the sources that instantiate it. One kernel serves every logit rule: this is a study of numerics.
#pragma once

#include "kernels/attention/cuda/fa4_numerics.cuh"
#include "kernels/attention/cuda/launch.cuh"

namespace assay::cuda {

template <class Element, int kDim>
void launch_fa4(const ForwardParams& p, CUstream_st* stream) {
  launch_tiles<ShapeFor<Element, kDim>, Fa4Numerics, true>(p, stream);
}

}  // namespace assay::cuda
