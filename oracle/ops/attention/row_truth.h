// Truth of one attention row, and how rows are put together into a Truth.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/ops/attention/problem.h"
#include "oracle/truth.h"

namespace assay {

// Class rules (numerics.md 2.14), from the mathematics alone. x_j = scale s_j + bias_j over the admissible keys j:
//  1. No admissible key: o is the declared empty value (kZero; kNan; kMean: kNumber, the mean of v over all keys of the
//     sequence, kZero if it has none), LSE the declared one.
//  2. Scores follow IEEE's rules for infinities: inf * 0 and inf - inf are NaN, also in scale * s and in + bias. Any NaN x:
//     o and LSE are NaN. Else any +inf x: o is NaN, LSE is NaN or +inf.
//  3. All x are -inf: o is NaN or the declared empty value; LSE is NaN, -inf or the declared empty value.
//  4. Otherwise keys with x = -inf have weight 0. A channel with v NaN, or both infinities, among the keys of finite x is NaN;
//     with one infinity it is that infinity; with all v = +-0 there it is kZero (mid 0); else kNumber.
//     A non-finite v of a key with x = -inf adds kNan; so does one of a masked key j < kv_len under kPropagates.
//     LSE is kNumber, in the declared base.
struct RowTruth {
  RowFacts facts;
  std::vector<double> o_mid, o_radius;  ///< [dv]; 0 where the classes hold no kNumber
  std::vector<ClassSet> o_classes;      ///< [dv]
  double lse_mid = 0, lse_radius = 0;   ///< in the declared base
  ClassSet lse_classes = kNumber;
};

/// The row in ball arithmetic at `precision` bits, and more, up to 1024, until its numbers are known to 60 bits; radii are
/// rounded up to doubles and cover the rounding of the midpoints.
RowTruth reference_row(const AttentionProblem& problem, const AttentionRow& row, int precision);

/// All judged rows by `reference_row`.
Truth attention_reference(const Problem& problem, int precision);

/// Empty Truth with the output layouts of the problem; `append` adds one row to it.
Truth start_truth(const AttentionProblem& problem);
void append(Truth& truth, const AttentionProblem& problem, const AttentionRow& row, const RowTruth& row_truth);

}  // namespace assay
