// Storing the rows of a query tile.
#include "kernels/attention/tile_store.h"

#include <algorithm>

#include "kernels/attention/quad_sum.h"
#include "kernels/attention/row_end.h"
#include "kernels/fault.h"

namespace assay {
namespace {

void mean_of_v(const AttentionCall& call, TileScores& scores, const QueryTile& queries, float* o) {
  const std::int64_t dv = scores.value_cols(), keys = call.kv_len(queries.batch), tile_n = scores.tile_n();
  std::fill_n(o, dv, 0.0F);
  if (keys == 0) return;
  QuadSum l{};
  for (std::int64_t tile = (keys - 1) / tile_n; tile >= 0; --tile) {
    const KeyRange in_tile{tile * tile_n, std::min((tile + 1) * tile_n, keys)};
    for (std::int64_t j = 0; j < in_tile.size(); ++j) lane_of(l, j) += 1.0F;
    scores.load(queries.batch, queries.head, in_tile);
    scores.accumulate_ones(in_tile, o);
  }
  const float inverse = 1.0F / sum_of_quad(l) * scores.value_scale();
  for (std::int64_t c = 0; c < dv; ++c) o[c] *= inverse;
}

}  // namespace

void store_rows(const AttentionCall& call, TileScores& scores, const QueryTile& queries, RowResults& rows) {
  const std::int64_t dv = scores.value_cols();
  const EmptyRow empty = empty_row(call.params(), sink_of(call, queries.head));
  for (std::size_t row = 0; row < queries.queries.size(); ++row) {
    float* o = rows.o.data() + static_cast<std::int64_t>(row) * dv;
    if (faulty(Fault::kOddRowUnstored) && row % 2 == 0 && row + 1 == queries.queries.size()) continue;
    if (rows.empty[row]) {
      if (faulty(Fault::kEmptyRowUnstored)) continue;
      rows.lse[row] = faulty(Fault::kEmptyLseFinite) ? -5e4F : empty.lse;
      if (empty.mean || faulty(Fault::kEmptyRowMean))
        mean_of_v(call, scores, queries, o);
      else
        std::fill_n(o, dv, empty.o);
    }
    call.store(queries.batch, queries.head, queries.queries[row], o, rows.lse[row]);
  }
}

}  // namespace assay
