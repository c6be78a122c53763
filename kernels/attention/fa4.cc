// FlashAttention-4 forward: the maximum is raised lazily, and a part of the exponentials is a cubic.
#include "kernels/attention/online_softmax.h"
#include "kernels/attention/register.h"

namespace assay {
namespace {

struct Fa4 {
  static std::optional<std::string> refuses(const AttentionParams& p) { return contiguous_kernel_refuses(p); }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, 128, 1);
    a.exponential = Exponential::kPolynomial3;
    a.max_policy = MaxPolicy::kLazy;
    a.lazy_threshold = 8;
    a.tile_order = TileOrder::kForward;
    return a;
  }
  static RunFacts run(const AttentionCall& call) { return run_online_softmax(call, declared(call.params())); }
};

const RegisterKernel kBf16{attention_kernel<Fa4, Format::kBf16>(
    {.name = "fa4_bf16",
     .summary = "FlashAttention-4 tiles, lazy maximum, a quarter of the exponentials cubic, bf16"})};
const RegisterKernel kFp16{attention_kernel<Fa4, Format::kFp16>(
    {.name = "fa4_fp16",
     .summary = "FlashAttention-4 tiles, lazy maximum, a quarter of the exponentials cubic, fp16"})};

}  // namespace
}  // namespace assay
