// Cascade attention: the shared prefix and a sequence's own keys apart, each an online softmax, merged by their LSE.
#include "kernels/attention/merge_states.h"
#include "kernels/attention/register.h"
#include "kernels/fault.h"

namespace assay {
namespace {

constexpr std::int64_t kTileN = 64;

struct Cascade {
  static std::optional<std::string> refuses(const AttentionParams& p) {
    if (p.prefix == 0) return "needs a shared prefix";
    return tile_kernel_refuses(p);
  }
  /// Two ranges, cut at the prefix wherever that lies; the tiles of the second count from there.
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, kTileN, 2);
    a.tile_order = TileOrder::kForward;
    a.split_at = static_cast<int>(p.prefix);
    return a;
  }
  static RunFacts run(const AttentionCall& call) {
    const AttentionParams& p = call.params();
    TileSoftmax softmax(call, declared(p), kTileN);
    for (const HeadRows& rows : call.rows()) {
      for (const QueryTile& queries : softmax.query_tiles(rows)) {
        std::vector<RowStates> partials;
        for (const KeyRange part : {KeyRange{0, p.prefix}, KeyRange{p.prefix, call.kv_len(rows.batch)}}) {
          RowStates& states = partials.emplace_back(softmax.start(queries));
          softmax.walk(states, queries, part);
          softmax.finish(states, faulty(Fault::kSinkInEveryPart) ? sink_of(call, rows.head) : RowSink{},
                         LseBase::kNatural);
        }
        RowStates merged = softmax.start(queries);
        merge_states(partials, sink_of(call, rows.head), p.lse, merged);
        softmax.store(merged, queries);
      }
    }
    return {"prefix of " + std::to_string(p.prefix) + " keys apart, tile " + std::to_string(kTileN)};
  }
};

const RegisterKernel kBf16{attention_kernel<Cascade, Format::kBf16>(
    {.name = "cascade_bf16", .summary = "shared prefix and own keys attended apart and merged by LSE, bf16"})};

}  // namespace
}  // namespace assay
