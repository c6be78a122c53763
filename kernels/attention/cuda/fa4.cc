// FlashAttention-4's numerics on the device: the tile kernel with a lazy maximum and a part of the exponentials cubic.
#include "kernels/attention/cuda/device_kernel.h"
#include "kernels/attention/cuda/launches.h"
#include "kernels/attention/online_softmax.h"

namespace assay::cuda {
namespace {

struct Fa4 {
  static std::optional<std::string> refuses(const AttentionParams& p) { return tile_forward_refuses(p, 128); }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, keys_per_tile(largest_dim(p)), 1);
    a.exponential = Exponential::kPolynomial3;
    a.max_policy = MaxPolicy::kLazy;
    a.lazy_threshold = 8;
    a.tile_order = TileOrder::kForward;
    return a;
  }
  template <class Element>
  static std::string launch(const ForwardParams& p, DeviceCall& call) {
    const int dim = p.dim_qk > p.dim_v ? p.dim_qk : p.dim_v;
    const auto launch = dim <= 64 ? launch_fa4<Element, 64> : launch_fa4<Element, 128>;
    launch(p, call.stream());
    return tile_text(dim);
  }
};

const RegisterKernel kBf16{device_kernel<Fa4, Bf16>(
    {.name = "fa4_cuda_bf16",
     .summary = "tiles on tensor cores, lazy maximum, a quarter of the exponentials cubic, bf16"})};
const RegisterKernel kFp16{device_kernel<Fa4, Fp16>(
    {.name = "fa4_cuda_fp16",
     .summary = "tiles on tensor cores, lazy maximum, a quarter of the exponentials cubic, fp16"})};

}  // namespace
}  // namespace assay::cuda
