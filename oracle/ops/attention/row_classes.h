// Classes of a row's outputs in the fp64 tier, by the rules of row_truth.h.
#pragma once

#include <vector>

#include "oracle/ops/attention/row_logits.h"

namespace assay {

/// A row without softmax: a NaN or +inf logit (rule 2), or no finite one (rules 1, 3, 5, and 6 to 8 on top). `has_keys`: some key
/// is admissible. Returns whether o is the mean of the values: then o_classes holds only what comes on top of the mean's classes.
bool classify_without_softmax(const AttentionProblem& problem, const HeadOperands& head, const AttentionRow& row,
                              const LogitFacts& logits, bool has_keys, RowTruth& truth);

/// Rules 4 and 6 to 9 for a row with finite logits, whose keys are a.keys. nonzero[c]: channel c of some value among them, times its
/// factor, is not zero. Numbers of elements that are no kNumber become 0.
void classify_softmax(const AttentionProblem& problem, const RowAnalysis& a, const LogitFacts& logits,
                      const std::vector<bool>& nonzero, RowTruth& truth);

/// The o_classes of rule 4 alone, and the numbers of o.
void classify_values(const AttentionProblem& problem, const RowAnalysis& a, const std::vector<std::int32_t>& no_weight,
                     const std::vector<bool>& nonzero, RowTruth& truth);

}  // namespace assay
