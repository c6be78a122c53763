// A merge of one row as a kernel of the declared structure computes it, with any of its steps done otherwise.
#pragma once

#include <functional>
#include <optional>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/merge/problem.h"

namespace assay {

/// What a kernel does otherwise than declared; the default is nothing. A format kFp32 rounds nothing more.
struct MergeDeviation {
  double base = 1;                               ///< multiplies ln B in the weights and in the LSE
  std::function<double(double)> exp2 = nullptr;  ///< of the exponent, in log2 units
  bool equal = false, last_only = false,
       swapped = false;  ///< equal weights; O of the last part; weights of the other part
  Format part_lse = Format::kFp32, part_o = Format::kFp32, state = Format::kFp32;
  double gain = 1;  ///< of O
  double lse_factor = 1;
};

/// Replays rows that have numbers, part after part (Normalize::kEveryStep) or in two passes.
class MergeReplay {
 public:
  MergeReplay(const Problem& problem, const Arithmetic& declared)
      : problem_(problem), pairwise_(declared.normalize == Normalize::kEveryStep) {}
  /// The truth of a row plus what the deviation changes in the replay.
  std::optional<RowOutput> predict(std::size_t row, const MergeDeviation& deviation, const Truth& truth) const;

  const MergeProblem& problem() const { return problem_; }
  bool pairwise() const { return pairwise_; }

 private:
  RowOutput row(const MergeRow& row, const MergeDeviation& d) const;

  const MergeProblem problem_;
  bool pairwise_;
};

}  // namespace assay
