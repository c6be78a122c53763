// FlashAttention-2 forward on the device: mma.sync, cp.async, P in registers.
#include "kernels/attention/cuda/device_kernel.h"
#include "kernels/attention/cuda/launches.h"
#include "kernels/attention/online_softmax.h"

namespace assay::cuda {
namespace {

struct Fa2 {
  static std::optional<std::string> refuses(const AttentionParams& p) { return tile_forward_refuses(p, 256); }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, keys_per_tile(largest_dim(p)), 1);
    a.exponential = device_exponential();
    return a;
  }
  template <class Element>
  static std::string launch(const ForwardParams& p, DeviceCall& call) {
    const int dim = p.dim_qk > p.dim_v ? p.dim_qk : p.dim_v;
    const auto launch = dim <= 64    ? launch_fa2<Element, 64>
                        : dim <= 128 ? launch_fa2<Element, 128>
                                     : launch_fa2<Element, 256>;
    launch(p, call.stream());
    return tile_text(dim);
  }
};

const RegisterKernel kBf16{device_kernel<Fa2, Bf16>(
    {.name = "fa2_cuda_bf16", .summary = "FlashAttention-2 tiles on tensor cores by mma.sync, bf16 inputs and P"})};
const RegisterKernel kFp16{device_kernel<Fa2, Fp16>(
    {.name = "fa2_cuda_fp16", .summary = "FlashAttention-2 tiles on tensor cores by mma.sync, fp16 inputs and P"})};

}  // namespace
}  // namespace assay::cuda
