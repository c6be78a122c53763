// FlashAttention-3 forward in 8 bits: P with an offset of 2^8, and P V with or without two-level accumulation.
#include "kernels/attention/online_softmax.h"
#include "kernels/attention/register.h"

namespace assay {
namespace {

constexpr std::int64_t kTileN = 128;
constexpr int kOffset =
    8;  // P of the maximum is 256, below the 448 of e4m3; weights down to 2^-17 of it stay above zero

template <bool kTwoLevels>
struct Fa3 {
  static std::optional<std::string> refuses(const AttentionParams& p) {
    return contiguous_kernel_refuses(p, KvStore::kVllm);
  }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, kTileN, 1);
    a.p_offset = kOffset;
    a.promote_n = kTwoLevels ? static_cast<int>(kTileN) : 0;
    return a;
  }
  static RunFacts run(const AttentionCall& call) { return run_online_softmax(call, declared(call.params())); }
};

const RegisterKernel kE4m3{attention_kernel<Fa3<true>, Format::kE4m3>(
    {.name = "fa3_e4m3", .summary = "FlashAttention-3 tiles, e4m3 inputs and P, P V of each tile promoted to fp32"})};
const RegisterKernel kE5m2{attention_kernel<Fa3<true>, Format::kE5m2>(
    {.name = "fa3_e5m2", .summary = "FlashAttention-3 tiles, e5m2 inputs and P, P V of each tile promoted to fp32"})};
const RegisterKernel kSingle{attention_kernel<Fa3<false>, Format::kE4m3>(
    {.name = "fa3_e4m3_single",
     .summary = "FlashAttention-3 tiles, e4m3 inputs and P, P V in one chain of 13-bit accumulators"})};

}  // namespace
}  // namespace assay
