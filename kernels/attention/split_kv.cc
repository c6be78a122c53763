// Split-KV decoding over contiguous keys, and what every split kernel does.
#include "kernels/attention/split_kv.h"

#include <algorithm>

#include "kernels/attention/merge_states.h"
#include "kernels/attention/register.h"
#include "kernels/fault.h"
#include "kernels/narrow.h"

namespace assay {

std::int64_t splits_of(const AttentionParams& params) {
  std::int64_t longest = params.lens_kv.empty() ? params.len_kv : 0;
  for (std::int64_t len : params.lens_kv) longest = std::max(longest, len);
  const std::int64_t keys = longest <= 4096 ? 256 : 512;
  return std::max<std::int64_t>(1, (longest + keys - 1) / keys);
}

Arithmetic split_arithmetic(const AttentionParams& params) {
  return tile_arithmetic(params, kSplitTileN, splits_of(params));
}

RunFacts run_split_kv(const AttentionCall& call, bool by_tile) {
  const std::int64_t splits = splits_of(call.params());
  TileSoftmax softmax(call, split_arithmetic(call.params()), kSplitTileN);
  static int runs = 0;
  const bool other_order = faulty(Fault::kMergeOrderVaries) && ++runs % 2 == 0;
  for (HeadRows rows : call.rows()) {
    const std::int64_t own = rows.batch;
    if (faulty(Fault::kBatchFolded) && splits > 1 && call.q_len(own) > 1 && call.q_len(0) >= call.q_len(own))
      rows.batch = 0;
    const std::int64_t keys = call.kv_len(rows.batch);
    if (!by_tile) softmax.load(rows.batch, rows.head, {0, keys});
    const std::int64_t tiles = (keys + kSplitTileN - 1) / kSplitTileN;
    const std::int64_t keys_per_split = (tiles + splits - 1) / splits * kSplitTileN;
    for (QueryTile queries : softmax.query_tiles(rows)) {
      std::vector<RowStates> partials;
      for (std::int64_t split = 0; split < splits; ++split) {
        const KeyRange part{split * keys_per_split, std::min((split + 1) * keys_per_split, keys)};
        if (faulty(Fault::kSplitLost) && split > 0 && !part.empty() && part.end == keys) continue;
        RowStates& states = partials.emplace_back(softmax.start(queries));
        softmax.walk(states, queries, part);
        softmax.finish(states, faulty(Fault::kSinkInEverySplit) ? sink_of(call, rows.head) : RowSink{},
                       faulty(Fault::kPartialLseBaseTwo) ? LseBase::kTwo : LseBase::kNatural);
        if (faulty(Fault::kLseNotStored) && call.params().lse == LseBase::kNone)
          std::fill(states.lse.begin(), states.lse.end(), 0.0F);
        if (faulty(Fault::kPartialLseInBf16)) narrow_all(Format::kBf16, states.lse);
        if (faulty(Fault::kPartialOutputInBf16)) narrow_all(Format::kBf16, states.o);
        if (faulty(Fault::kPartialLseOfFirstRow)) std::fill(states.lse.begin(), states.lse.end(), states.lse.front());
      }
      if (other_order) std::reverse(partials.begin(), partials.end());
      RowStates merged = softmax.start(queries);
      merge_states(partials, sink_of(call, rows.head), call.params().lse, merged);
      queries.batch = own;
      softmax.store(merged, queries);
    }
  }
  return {std::to_string(splits) + " splits, tile " + std::to_string(kSplitTileN)};
}

namespace {

struct SplitKv {
  static std::optional<std::string> refuses(const AttentionParams& p) { return contiguous_kernel_refuses(p); }
  static Arithmetic declared(const AttentionParams& p) { return split_arithmetic(p); }
  static RunFacts run(const AttentionCall& call) { return run_split_kv(call, false); }
};

const RegisterKernel kBf16{attention_kernel<SplitKv, Format::kBf16>(
    {.name = "split_bf16", .summary = "split-KV decoding with LSE merge, bf16 inputs and P, Hopper block FMA"})};
const RegisterKernel kFp16{attention_kernel<SplitKv, Format::kFp16>(
    {.name = "split_fp16", .summary = "split-KV decoding with LSE merge, fp16 inputs and P, Hopper block FMA"})};

}  // namespace
}  // namespace assay
