// FlashDecoding: the keys of a row in splits, each with its own online softmax, merged by their LSE.
#include <algorithm>

#include "kernels/attention/online_softmax.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

constexpr std::int64_t kTileN = 64;

/// Splits for the longest sequence of the batch: one per 256 keys up to 4,096 keys, one per 512 above. Every sequence is cut
/// into that many ranges of whole tiles, so that short ones have empty splits.
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

/// A split's result: normalised fp32 output and natural LSE; LSE -inf and O 0 without admissible key.
struct Partial {
  std::vector<float> o;
  float lse = -kInfinity;
};

Partial run_split(TileSoftmax& softmax, const RowAt& row, const float* q, KeyRange tiles) {
  RowState state = softmax.start();
  const std::int64_t first = std::max(tiles.first, row.keys.first / kTileN);
  const std::int64_t end = std::min(tiles.end, (row.keys.end + kTileN - 1) / kTileN);
  for (std::int64_t tile = end - 1; tile >= first; --tile) softmax.step(state, row, q, tile);
  Partial partial;
  if (!softmax.finish(state, LseBase::kNatural, partial.lse)) {
    partial.lse = -kInfinity;
    state.o.assign(state.o.size(), 0.0F);
  }
  partial.o = std::move(state.o);
  return partial;
}

/// m = max lse_s, w_s = exp2(fl((lse_s - m) log2 e)), O = sum w_s O_s / sum w_s, LSE = m + ln sum w_s, splits ascending.
/// False if every split is empty.
bool merge(const std::vector<Partial>& partials, LseBase base, std::vector<float>& o, float& lse) {
  float m = -kInfinity;
  for (const Partial& partial : partials) m = max_keeping_nan(m, partial.lse);
  if (m == -kInfinity) return false;
  float sum = 0.0F;
  o.assign(partials.front().o.size(), 0.0F);
  for (const Partial& partial : partials) {
    const float weight = exp2_f32((partial.lse - m) * kLog2e);
    sum += weight;
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += weight * partial.o[c];
  }
  for (float& value : o) value /= sum;
  lse = base == LseBase::kTwo ? m * kLog2e + log2_f32(sum) : m + log_f32(sum);
  return true;
}

RunFacts run(const Call& raw) {
  const AttentionCall call(raw);
  const std::int64_t splits = splits_of(call.params());
  TileSoftmax softmax(call, kTileN);
  std::vector<Partial> partials;
  for (const auto& [b, h, queries] : call.rows()) {
    softmax.load_head(b, h);
    const std::int64_t tiles = (call.kv_len(b) + kTileN - 1) / kTileN;
    const std::int64_t per_split = (tiles + splits - 1) / splits;
    for (const std::int64_t i : queries) {
      const RowAt row{b, h, i, key_range(call, b, i)};
      const std::vector<float> q = softmax.load_q(row);
      partials.clear();
      for (std::int64_t s = 0; s < splits; ++s)
        partials.push_back(run_split(softmax, row, q.data(), {s * per_split, std::min((s + 1) * per_split, tiles)}));
      RowState state = softmax.start();
      float lse = 0.0F;
      if (!merge(partials, call.params().lse, state.o, lse)) softmax.finish_empty(state, row, lse);
      call.store(b, h, i, state.o.data(), lse);
    }
  }
  return {std::to_string(splits) + " splits, tile " + std::to_string(kTileN)};
}

const RegisterKernel kBf16{{.name = "split_bf16",
                            .op = "attention",
                            .summary = "split-KV decoding with LSE merge, bf16 inputs and P, Hopper block FMA",
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "split_fp16",
                            .op = "attention",
                            .summary = "split-KV decoding with LSE merge, fp16 inputs and P, Hopper block FMA",
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
