// One merge problem as the oracle reads it: the parts of a row, class rules, and rows into a Truth.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/merge/merge.h"

namespace assay {

/// One row's parts that are not empty; arrays are parallel to `part`.
struct MergeRow {
  std::int64_t row = 0;
  std::vector<std::int32_t> part;   ///< ascending
  std::vector<double> lse;          ///< as stored, in the base; finite where the row has numbers
  std::vector<double> o;            ///< [parts, dv], non-finite values as 0
  std::vector<ClassSet> o_classes;  ///< [dv]
  ClassSet lse_classes = kNumber;
  bool has_numbers = false;                         ///< rule 4
  std::vector<std::vector<std::int32_t>> infinite;  ///< [dv] indices into `part` of parts whose o is infinite there
};

// Class rules, from the mathematics alone. A part is empty if its LSE is -inf, or +inf where the case reads that so.
//  1. Any LSE is NaN: o and LSE are NaN. Else any +inf that is data: o is NaN, LSE is NaN or +inf.
//  2. All parts are empty, or there is none: o and LSE are the declared values.
//  3. Under rules 2 and 4 a non-finite o of an empty part adds kNan to its channel, unless the case ignores those.
//  4. Otherwise a channel with o NaN, or both infinities, among the parts that are not empty is NaN; with one infinity it is that
//     infinity; with all o = +-0 it is kZero; else kNumber. LSE is kNumber.
struct MergeTruth {
  RowFacts facts;
  std::vector<double> o_mid, o_radius;  ///< [dv]
  double lse_mid = 0, lse_radius = 0;   ///< in the base
};

/// Non-owning; the Problem must outlive it.
class MergeProblem {
 public:
  explicit MergeProblem(const Problem& problem);

  const MergeParams& params() const { return params_; }
  MergeRow row(std::int64_t row) const;
  const TensorLayout& o() const { return *o_; }
  const TensorLayout* lse() const { return lse_; }  ///< null if the case does not ask for it
  /// ln B.
  double log_base() const { return params_.base == LseBase::kTwo ? 0x1.62e42fefa39efp-1 : 1.0; }

 private:
  MergeParams params_;
  TensorView o_parts_, lse_parts_;
  const TensorLayout *o_ = nullptr, *lse_ = nullptr;
};

/// Facts that need no arithmetic, and room for numbers.
MergeTruth start_row(const MergeProblem& problem, const MergeRow& row);
Truth start_truth(const MergeProblem& problem);
void append(Truth& truth, const MergeProblem& problem, const MergeRow& row, const MergeTruth& row_truth);

/// The row in ball arithmetic at `precision` bits, and more, up to 1024, until its numbers are known to 60 bits.
MergeTruth merge_reference_row(const MergeProblem& problem, const MergeRow& row, int precision);
Truth merge_reference(const Problem& problem, int precision);

}  // namespace assay
