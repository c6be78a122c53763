// Truth of one attention row, and how rows are put together into a Truth.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/ops/attention/problem.h"
#include "oracle/truth.h"

namespace assay {

// Class rules (numerics.md 2.14), from the mathematics alone. With f_j = scale q_scale k_scale_j, s_j = q . k_j of the stored
// values, cap(y) = softcap tanh(y / softcap) or y, w_j = v_scale_j v_j, over the admissible keys j: x_j = cap(f_j s_j) + bias_j.
//  1. No admissible key: o is the declared empty value (kZero; kNan; kMean: kNumber, the mean of w over all keys of the
//     sequence, kZero if it has none), LSE the declared one.
//  2. Scores follow IEEE's rules for infinities: inf * 0 and inf - inf are NaN, also in f_j s_j and in + bias, except that
//     cap(+-inf) = +-softcap. Any NaN x: o and LSE are NaN. Else any +inf x: o is NaN, LSE is NaN or +inf.
//  3. All x are -inf: o is NaN or the declared empty value; LSE is NaN, -inf or the declared empty value.
//  4. Otherwise keys with x = -inf have weight 0. A channel with w NaN, or both infinities, among the keys of finite x is NaN;
//     with one infinity it is that infinity; with all w = +-0 there it is kZero (mid 0); else kNumber.
//     A non-finite w of a key with x = -inf adds kNan; so does one of a masked key j < kv_len under kPropagates.
//     LSE is kNumber, in the declared base.
// A sink of -inf is none. Any other changes rules 1, 3 and 4 (not 2), since it is one more logit, without a value:
//  5. Finite sink, no finite x: o is kZero; LSE is the sink's logit (kNumber) if it is in the LSE, else the declared empty one.
//     If there are keys (rule 3), o and LSE add kNan, an LSE without the sink also kMinusInf. Non-finite w of masked keys add
//     kNan as in rule 4.
//  6. Sink +inf: a channel with a non-finite w among the keys of finite x is kNan, every other one kZero or kNan. LSE with the
//     sink: kPlusInf or kNan; without it: as rules 1, 3 and 4 say, or kNan. Sink NaN: o is kNan; LSE with the sink kNan,
//     without it as for +inf.
// What kernels may do differently, because the order of their operations is theirs:
//  7. Some y_j infinite under a soft cap: o and LSE add kNan (tanh by exponentials gives inf / inf).
//  8. Some f_j infinite: o and LSE add kNan (a kernel that scales operands first adds infinities of both signs).
//  9. An infinite v_scale of a key of finite x: kNumber, kZero and infinities become {kPlusInf, kMinusInf, kNan} (factors may
//     multiply each value or the sum).
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
