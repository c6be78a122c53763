// FlashAttention-2 forward: query tiles against key tiles from last to first.
#include "kernels/attention/online_softmax.h"
#include "kernels/attention/register.h"

namespace assay {
namespace {

struct Fa2 {
  static std::optional<std::string> refuses(const AttentionParams& p) {
    return contiguous_kernel_refuses(p, KvStore::kVllm);
  }
  static Arithmetic declared(const AttentionParams& p) { return tile_arithmetic(p, p.dim_qk <= 64 ? 128 : 64, 1); }
  static RunFacts run(const AttentionCall& call) { return run_online_softmax(call, declared(call.params())); }
};

const RegisterKernel kBf16{attention_kernel<Fa2, Format::kBf16>(
    {.name = "fa2_bf16", .summary = "FlashAttention-2 tiles, bf16 inputs and P, Hopper block FMA"})};
const RegisterKernel kFp16{attention_kernel<Fa2, Format::kFp16>(
    {.name = "fa2_fp16", .summary = "FlashAttention-2 tiles, fp16 inputs and P, Hopper block FMA"})};

}  // namespace
}  // namespace assay
