// One merged row in fp64 with proven errors: what fast.cc computes and the budgets bound from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/ops/merge/problem.h"

namespace assay {

/// In natural-log units; arrays of parts are parallel to MergeRow::part.
struct MergeAnalysis {
  std::vector<double> depth, weight;  ///< D_s = ln B (lse_max - lse_s); e^-D_s
  double max_lse = 0;                 ///< natural
  double sum = 0;                     ///< L, >= 1
  double lse = 0, lse_radius = 0;     ///< natural
  std::vector<double> o, o_radius;    ///< [dv]
};
MergeAnalysis analyse_merge(const MergeProblem& problem, const MergeRow& row);

enum class MergeTerm : std::uint8_t { kWeights, kExp, kSum, kAccumulate, kNormalise, kLog, kChain, kFloor };
inline constexpr std::array<std::string_view, 8> kMergeTerms{"weights",   "exp", "row sum", "accumulate",
                                                             "normalise", "log", "chain",   "floor"};

struct MergeTau {
  double tau = 0;
  std::array<double, kMergeTerms.size()> terms{};  ///< parts of tau: they sum to it where it is finite
};

/// T0 of one row for one declared arithmetic (numerics.md 2.7 with 2.14).
struct MergeBound {
  std::vector<MergeTau> o;   ///< [dv]
  MergeTau lse;              ///< in the base
  std::string out_of_range;  ///< empty: every declared intermediate stays inside its format
  double lost_depth = 0;     ///< beyond this D_s a weight may have become 0, so that 0 * inf = NaN is legal
};
MergeBound bound_merge(const MergeProblem& problem, const MergeRow& row, const MergeAnalysis& a,
                       const Arithmetic& arithmetic);

/// Errors after a chain of pairwise merges, each of which leaves a normalised o and an fp32 LSE: derivation in
/// pairwise.cc.
struct ChainBound {
  std::vector<double> o;  ///< [dv]
  double lse = 0;         ///< natural
};
ChainBound bound_chain(const MergeRow& row, const MergeAnalysis& a, double log_base, const Arithmetic& arithmetic,
                       bool forward);

/// Truth and bound of one row; numbers may come from the reference where fp64 cannot decide them.
struct MergeRowResult {
  MergeTruth truth;
  MergeBound bound;
  MergeAnalysis analysis;
};
MergeRowResult evaluate_merge_row(const MergeProblem& problem, const MergeRow& row, const Arithmetic& arithmetic);

}  // namespace assay
