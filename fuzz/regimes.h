// The regimes of one judged case: what its rows and outputs tell for every op, and what its op adds.
#pragma once

#include <string>
#include <vector>

#include "oracle/measure.h"
#include "oracle/op.h"

namespace assay {

/// Keys of a row, its largest logit, their spread, effective keys, classes of output elements; then Op::regime_axes.
std::vector<RegimeAxis> regime_axes(const Op& op);

/// `measurement` of the outputs under `evaluation`.
Regimes regimes_of(const Op& op, const Problem& problem, const Arithmetic& declared, const Evaluation& evaluation,
                   const Measurement& measurement);

/// "largest logit: 20..88", for each level that is set.
std::vector<std::string> regime_names(const Op& op, const Regimes& regimes);

}  // namespace assay
