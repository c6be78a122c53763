// Candidate structures of an attention kernel and the outputs that each predicts, bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/ops/attention/analysis.h"

namespace assay {

/// A declared arithmetic completed by one choice for every field that was unknown: tiles, order, maximum, P format and
/// offset, splits. The likelier or simpler one of two structures comes first.
std::vector<Arithmetic> candidate_structures(const AttentionParams& params, const Arithmetic& declared,
                                             std::int64_t longest);

/// "tiles of 128 from last to first, P in bf16, 1 split".
std::string structure_in_words(const Arithmetic& structure, std::int64_t longest);

/// Output codes of a row under a structure: P replayed and rounded, everything else exact, one rounding at the end.
/// `depth` are the keys' logits below the largest one; empty if the structure leaves a decision open.
std::vector<std::uint64_t> predicted_codes(const RowAnalysis& row, const std::vector<double>& depth,
                                           const Arithmetic& structure, Format output);

}  // namespace assay
