// FlashAttention-2 forward: query tiles against key tiles from last to first.
#include "kernels/attention/online_softmax.h"

namespace assay {
namespace {

std::int64_t tile_n_of(const AttentionParams& p) { return p.dim_qk <= 64 ? 128 : 64; }

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  return tile_kernel_refuses(params, kInput);
}

Arithmetic declared(const Params& params) {
  const AttentionParams p = attention_params(params);
  return tile_arithmetic(p, tile_n_of(p), 1);
}

RunFacts run(const Call& raw) {
  const AttentionCall call(raw);
  const std::int64_t tile_n = tile_n_of(call.params());
  TileSoftmax softmax(call, tile_n);
  for (const HeadRows& rows : call.rows()) {
    softmax.load_head(rows.batch, rows.head);
    for (const QueryTile& queries : softmax.query_tiles(rows)) {
      RowStates states = softmax.start(queries);
      for (std::int64_t tile = queries.tiles.end - 1; tile >= queries.tiles.first; --tile)
        softmax.step(states, queries, tile);
      softmax.finish(states, call.params().lse);
      softmax.store(states, queries);
    }
  }
  return {"tile " + std::to_string(QueryTile::kTileM) + "x" + std::to_string(tile_n)};
}

const RegisterKernel kBf16{{.name = "fa2_bf16",
                            .op = "attention",
                            .summary = "FlashAttention-2 tiles, bf16 inputs and P, Hopper block FMA",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "fa2_fp16",
                            .op = "attention",
                            .summary = "FlashAttention-2 tiles, fp16 inputs and P, Hopper block FMA",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
