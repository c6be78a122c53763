// FlashDecoding: the keys of a row in splits, each with its own online softmax, merged by their LSE.
#include <algorithm>

#include "kernels/attention/online_softmax.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

constexpr std::int64_t kTileN = 64;

/// Splits for the longest sequence of the batch: one per 256 keys up to 4,096 keys, one per 512 above. Every sequence
/// is cut into that many ranges of whole tiles, so that short ones have empty splits.
std::int64_t splits_of(const AttentionParams& p) {
  std::int64_t longest = p.len_kv;
  if (p.batching != Batching::kDense) {
    longest = 0;
    for (std::int64_t len : p.lens_kv) longest = std::max(longest, len);
  }
  const std::int64_t keys = longest <= 4096 ? 256 : 512;
  return std::max<std::int64_t>(1, (longest + keys - 1) / keys);
}

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  return tile_kernel_refuses(params, kInput);
}

Arithmetic declared(const Params& params) {
  const AttentionParams p = attention_params(params);
  return tile_arithmetic(p, kTileN, splits_of(p));
}

/// m = max lse_s, w_s = exp2(fl((lse_s - m) log2 e)), O = sum w_s O_s / sum w_s, LSE = m + ln sum w_s, splits
/// ascending. The partials hold normalised fp32 O and natural LSE; an empty split has O = 0, LSE = -inf, so its weight
/// is 0.
void merge(const std::vector<RowStates>& partials, LseBase base, RowStates& merged) {
  const std::size_t rows = merged.m.size();
  const std::size_t dv = merged.o.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    float m = -kInfinity;
    for (const RowStates& partial : partials) m = max_keeping_nan(m, partial.lse[row]);
    merged.empty[row] = m == -kInfinity;
    if (merged.empty[row]) continue;
    float* o = merged.o.data() + row * dv;
    float sum = 0.0F;
    for (const RowStates& partial : partials) {
      const float weight = exp2_f32((partial.lse[row] - m) * kLog2e);
      sum += weight;
      for (std::size_t c = 0; c < dv; ++c) o[c] += weight * partial.o[row * dv + c];
    }
    for (std::size_t c = 0; c < dv; ++c) o[c] /= sum;
    merged.lse[row] = base == LseBase::kTwo ? m * kLog2e + log2_f32(sum) : m + log_f32(sum);
  }
}

RunFacts run(const Call& raw) {
  const AttentionCall call(raw);
  const std::int64_t splits = splits_of(call.params());
  TileSoftmax softmax(call, kTileN);
  for (const HeadRows& rows : call.rows()) {
    softmax.load_head(rows.batch, rows.head);
    const std::int64_t tiles = (call.kv_len(rows.batch) + kTileN - 1) / kTileN;
    const std::int64_t per_split = (tiles + splits - 1) / splits;
    for (const QueryTile& queries : softmax.query_tiles(rows)) {
      std::vector<RowStates> partials;
      for (std::int64_t split = 0; split < splits; ++split) {
        const std::int64_t first = std::max(queries.tiles.first, split * per_split);
        const std::int64_t end = std::min(queries.tiles.end, (split + 1) * per_split);
        RowStates& states = partials.emplace_back(softmax.start(queries));
        for (std::int64_t tile = end - 1; tile >= first; --tile) softmax.step(states, queries, tile);
        softmax.finish(states, LseBase::kNatural);
      }
      RowStates merged = softmax.start(queries);
      merge(partials, call.params().lse, merged);
      softmax.store(merged, queries);
    }
  }
  return {std::to_string(splits) + " splits, tile " + std::to_string(kTileN)};
}

const RegisterKernel kBf16{{.name = "split_bf16",
                            .op = "attention",
                            .summary = "split-KV decoding with LSE merge, bf16 inputs and P, Hopper block FMA",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "split_fp16",
                            .op = "attention",
                            .summary = "split-KV decoding with LSE merge, fp16 inputs and P, Hopper block FMA",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
