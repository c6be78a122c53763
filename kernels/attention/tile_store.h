// Finished rows of a query tile, and storing them; empty rows get their declared values here.
#pragma once

#include <vector>

#include "kernels/attention/tile_scores.h"

namespace assay {

struct RowResults {
  std::vector<float> o;     ///< [rows, dv padded], normalised
  std::vector<float> lse;   ///< in the base that was asked for
  std::vector<bool> empty;  ///< no admissible key, or every logit -inf; O is 0 and LSE -inf then
};

/// Stores O and LSE of every row. The mean of V, where an empty row holds that, is P = 1 on every key, tile by tile.
void store_rows(const AttentionCall& call, TileScores& scores, const QueryTile& queries, RowResults& rows);

}  // namespace assay
