// Online softmax of a query tile over key tiles, FlashAttention-2 step for step: the part that most tile kernels share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/row_end.h"
#include "kernels/attention/tile_store.h"

namespace assay {

/// What the rows carry from key tile to key tile; results after `finish`.
struct RowStates : RowResults {
  std::vector<float> m;    ///< running maximum of x (LogitForm)
  std::vector<QuadSum> l;  ///< running sums of unrounded P, in P's offset unit
  std::vector<bool> any;   ///< an admissible key was seen
};

/// Maximum policy, lazy threshold and all that TileScores reads are those of the declaration.
class TileSoftmax {
 public:
  TileSoftmax(const AttentionCall& call, const Arithmetic& declared, std::int64_t tile_n);

  void load(std::int64_t batch, std::int64_t head, KeyRange keys) { scores_.load(batch, head, keys); }
  std::vector<QueryTile> query_tiles(const HeadRows& rows) const { return scores_.query_tiles(rows); }

  RowStates start(const QueryTile& queries) const;
  /// S, mask, maximum, P, row sum, rescaling and P V of one tile of loaded keys.
  void step(RowStates& states, const QueryTile& queries, KeyRange keys);
  /// The steps over the tiles of `part`, counted from its first key and in the declared order, that hold a key the
  /// queries may see; loads each where it is not loaded yet.
  void walk(RowStates& states, const QueryTile& queries, KeyRange part);
  /// Normalises O by 1 / l, multiplied by v_scale, and forms the LSE in a base. A sink joins here.
  void finish(RowStates& states, RowSink sink, LseBase base) const;
  void store(RowStates& states, const QueryTile& queries) { store_rows(call_, scores_, queries, states); }

 private:
  struct Step;  ///< one row's shift and rescaling in a key tile
  Step shift(RowStates& states, std::size_t row) const;

  const AttentionCall& call_;
  Arithmetic declared_;
  std::int64_t tile_n_;
  TileScores scores_;
};

/// A whole call by one online softmax per row, with the declared tiles. Reads K and V of a head ahead, or `by_tile`, as
/// it comes to them.
RunFacts run_online_softmax(const AttentionCall& call, const Arithmetic& declared, bool by_tile = false);

/// What every tile kernel refuses: one factor for all keys of a head, and P = 0 for masked keys.
std::optional<std::string> tile_kernel_refuses(const AttentionParams& params);
/// The same, and all stores of keys but contiguous ones and `other`.
std::optional<std::string> contiguous_kernel_refuses(const AttentionParams& params,
                                                     KvStore other = KvStore::kContiguous);
/// FlashAttention-2's declaration, on which the others are built.
Arithmetic tile_arithmetic(const AttentionParams& params, std::int64_t tile_n, std::int64_t splits);

}  // namespace assay
