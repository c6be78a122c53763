// Numeric regimes of an attention case: where its logits, weights, tiles, pages and scales lie.
#pragma once

#include <vector>

#include "oracle/op.h"

namespace assay {

const std::vector<RegimeAxis>& attention_regime_axes();
/// Lengths of every sequence; weights and tiles of at most 8 rows, under the declared tile and splits (tiles of 64 and no
/// splits where they are unknown).
void attention_regimes(const Problem& problem, const Arithmetic& declared, Regimes& reached);

}  // namespace assay
