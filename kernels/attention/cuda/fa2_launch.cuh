// launch_fa2 for the sources that instantiate it, one each so that they compile side by side.
#pragma once

#include "kernels/attention/cuda/fa2_numerics.cuh"
#include "kernels/attention/cuda/launch.cuh"

namespace assay::cuda {

template <class Element, int kDim>
void launch_fa2(const ForwardParams& p, CUstream_st* stream) {
  using S = ShapeFor<Element, kDim>;
  if (is_general(p))
    launch_tiles<S, Fa2Numerics<Element>, true>(p, stream);
  else
    launch_tiles<S, Fa2Numerics<Element>, false>(p, stream);
}

}  // namespace assay::cuda
