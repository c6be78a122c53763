// Decoding from pages: tiles of 64 keys, first to last, each gathered through the page table when its turn comes.
#include "kernels/attention/online_softmax.h"
#include "kernels/attention/register.h"
#include "kernels/attention/split_kv.h"

namespace assay {
namespace {

bool block_tables(KvStore store) { return store == KvStore::kVllm || store == KvStore::kVllmX; }
bool page_lists(KvStore store) { return store == KvStore::kNhd || store == KvStore::kHnd; }

/// One pass over the pages.
template <bool (*kReads)(KvStore)>
struct Paged {
  static std::optional<std::string> refuses(const AttentionParams& p) {
    if (!kReads(p.kv_store))
      return std::string("reads ") + (kReads(KvStore::kVllm) ? "kv=vllm and vllm_x" : "kv=nhd and hnd") + " only";
    return tile_kernel_refuses(p);
  }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, 64, 1);
    a.tile_order = TileOrder::kForward;
    return a;
  }
  static RunFacts run(const AttentionCall& call) { return run_online_softmax(call, declared(call.params()), true); }
};

/// FlashDecoding's splits over the pages.
struct PagedSplit {
  static std::optional<std::string> refuses(const AttentionParams& p) {
    if (p.kv_store == KvStore::kContiguous) return "reads paged keys only";
    return tile_kernel_refuses(p);
  }
  static Arithmetic declared(const AttentionParams& p) { return split_arithmetic(p); }
  static RunFacts run(const AttentionCall& call) { return run_split_kv(call, true); }
};

const RegisterKernel kVllm{attention_kernel<Paged<block_tables>, Format::kBf16>(
    {.name = "paged_vllm_bf16", .summary = "paged decoding through vLLM's block table, both K layouts, bf16"})};
const RegisterKernel kFlashinfer{attention_kernel<Paged<page_lists>, Format::kBf16>(
    {.name = "paged_flashinfer_bf16", .summary = "paged decoding through FlashInfer's page lists, NHD and HND, bf16"})};
const RegisterKernel kSplit{attention_kernel<PagedSplit, Format::kBf16>(
    {.name = "paged_split_bf16", .summary = "split-KV decoding from pages of every layout with LSE merge, bf16"})};

}  // namespace
}  // namespace assay
