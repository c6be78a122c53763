// FlashAttention-2 forward: query tiles against key tiles from last to first, one online softmax per row.
#include <algorithm>

#include "kernels/attention/online_softmax.h"

namespace assay {
namespace {

constexpr std::int64_t kTileM = 64;

std::int64_t tile_n_of(const AttentionParams& p) { return p.dim_qk <= 64 ? 128 : 64; }

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  return tile_kernel_refuses(params, kInput);
}

Arithmetic declared(const Params& params) {
  const AttentionParams p = attention_params(params);
  return tile_arithmetic(p, tile_n_of(p), 1);
}

/// Key tiles [first, end) that some row of the query tile at `query` needs.
KeyRange key_tiles(const AttentionCall& call, std::int64_t batch, std::int64_t query, std::int64_t tile_n) {
  KeyRange keys{call.kv_len(batch), 0};
  for (std::int64_t i = query; i < std::min(query + kTileM, call.q_len(batch)); ++i) {
    const KeyRange row = key_range(call, batch, i);
    if (row.empty()) continue;
    keys.first = std::min(keys.first, row.first);
    keys.end = std::max(keys.end, row.end);
  }
  if (keys.empty()) return {};
  return {keys.first / tile_n, (keys.end + tile_n - 1) / tile_n};
}

RunFacts run(const Call& raw) {
  const AttentionCall call(raw);
  const std::int64_t tile_n = tile_n_of(call.params());
  TileSoftmax softmax(call, tile_n);
  std::vector<RowAt> rows;
  std::vector<std::vector<float>> q;
  std::vector<RowState> states;
  for (const auto& [b, h, queries] : call.rows()) {
    softmax.load_head(b, h);
    for (std::size_t next = 0; next < queries.size();) {
      const std::int64_t first = queries[next] / kTileM * kTileM;
      rows.clear();
      q.clear();
      states.clear();
      for (; next < queries.size() && queries[next] < first + kTileM; ++next) {
        rows.push_back({b, h, queries[next], key_range(call, b, queries[next])});
        q.push_back(softmax.load_q(rows.back()));
        states.push_back(softmax.start());
      }
      const KeyRange tiles = key_tiles(call, b, first, tile_n);
      for (std::int64_t tile = tiles.end - 1; tile >= tiles.first; --tile)
        for (std::size_t r = 0; r < rows.size(); ++r) softmax.step(states[r], rows[r], q[r].data(), tile);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        float lse = 0.0F;
        if (!softmax.finish(states[r], call.params().lse, lse)) softmax.finish_empty(states[r], rows[r], lse);
        call.store(b, h, rows[r].query, states[r].o.data(), lse);
      }
    }
  }
  return {"tile " + std::to_string(kTileM) + "x" + std::to_string(tile_n)};
}

const RegisterKernel kBf16{{.name = "fa2_bf16",
                            .op = "attention",
                            .summary = "FlashAttention-2 tiles, bf16 inputs and P, Hopper block FMA",
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "fa2_fp16",
                            .op = "attention",
                            .summary = "FlashAttention-2 tiles, fp16 inputs and P, Hopper block FMA",
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
