// Unfused attention on the device: fp32 scores in a workspace, CUDA cores.
#include "kernels/attention/naive.h"

#include <algorithm>

#include "kernels/attention/cuda/device_kernel.h"
#include "kernels/attention/cuda/launches.h"

namespace assay::cuda {
namespace {

/// Scores held at a time.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

struct Naive {
  static std::optional<std::string> refuses(const AttentionParams& p) { return forward_refuses(p); }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = naive_arithmetic(p);
    a.exponential = device_exponential();
    return a;
  }
  template <class Element>
  static std::string launch(const ForwardParams& p, DeviceCall& call) {
    const std::int64_t tile = std::int64_t{kNaiveRows} * std::max<std::int64_t>(1, p.kv_len.longest);
    const std::int64_t tiles =
        (p.q_len.longest + kNaiveRows - 1) / std::int64_t{kNaiveRows} * p.heads_q * std::int64_t{p.batch};
    const std::int64_t room = std::clamp<std::int64_t>(kMostBytes / 4 / tile, 1, std::max<std::int64_t>(1, tiles));
    launch_naive<Element>(p, call.workspace<float>("scores", room * tile), room, call.stream());
    return "unfused, " + std::to_string(room) + " query tiles at a time";
  }
};

const RegisterKernel kFp32{device_kernel<Naive, Fp32>(
    {.name = "naive_cuda_fp32", .summary = "unfused attention on CUDA cores, fp32 inputs, scalar fp32 arithmetic"})};
const RegisterKernel kBf16{device_kernel<Naive, Bf16>(
    {.name = "naive_cuda_bf16", .summary = "unfused attention on CUDA cores, bf16 inputs, scalar fp32 arithmetic"})};
const RegisterKernel kFp16{device_kernel<Naive, Fp16>(
    {.name = "naive_cuda_fp16", .summary = "unfused attention on CUDA cores, fp16 inputs, scalar fp32 arithmetic"})};

}  // namespace
}  // namespace assay::cuda
