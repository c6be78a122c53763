// One row in fp64: scores, weights, output and the proven error of each; what fast.cc computes and budget.cc bounds from.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/operands.h"
#include "oracle/ops/attention/row_truth.h"

namespace assay {

/// Weights e^-D below this are set to 0: far below what any bound can see, and products with them never leave fp64's normal range.
inline constexpr double kWeightFloor = 0x1p-800;

/// Sums over a row's keys that stand for its arrays in most bounds.
struct KeySums {
  static constexpr std::int32_t kBlock = 64;
  bool known = false;
  double depth = 0;               ///< sum p_j D_j
  double magnitude = 0;           ///< sum p_j |q| |k_j|
  double deepest = 0;             ///< largest D_j
  std::vector<double> shallowest; ///< least D_j of each run of kBlock keys from a multiple of it, from the first key's on
};

/// Scratch and results of one row. Everything in natural-log units. Arrays of keys are parallel to `keys`. What depends on the
/// logits' form (attention.h): y_j = factor_j s_j, x_j = cap(y_j) + bias_j.
struct RowAnalysis {
  AttentionRow row;
  const HeadOperands* operands = nullptr;
  /// False: score, magnitude, linear, depth and p are empty, because the keys are alike (one factor, no bias, no soft cap, one range) and
  /// `sums` says enough for most; Strip::describe fills them.
  bool described = true;
  KeySums sums;
  bool uniform = false;             ///< an empty row under EmptyOutput::kMean: equal weights over all keys
  std::vector<std::int32_t> keys;   ///< keys with a finite logit, ascending; the set of the softmax
  std::size_t top = 0;              ///< index in them of the key of the largest computed logit
  std::vector<double> score;        ///< s_j = q.k_j of the stored values
  std::vector<double> magnitude;    ///< at least sum |q_c k_jc|, rounded up
  bool magnitude_exact = false;     ///< that sum itself, not |q| |k_j|
  std::vector<double> factor;       ///< scale q_scale k_scale_j; one element if it is the same for all keys
  std::vector<double> linear;       ///< y_j, before the soft cap
  std::vector<double> bias;         ///< ALiBi and additive mask; empty if the case has neither
  double slope = 0;                 ///< |ALiBi slope| of the row's head; 0 without ALiBi
  std::vector<double> depth;        ///< D_j = x_max - x_j >= 0 (computed); x_max over the keys, not the sink
  std::vector<double> p;            ///< normalised weights (they sum to 1 - sink_p)
  std::vector<double> value_factor; ///< v_scale_j; empty: 1; one element if it is the same for all keys
  double sink = 0, sink_p = 0;      ///< the sink's logit and its share of the denominator; -inf and 0 without one
  double psi64 = 0;                 ///< |computed p_j - exact p_j| <= psi64 p_j + kWeightFloor for every key
  double operand_max = 0;           ///< largest finite |q| of the row plus largest |k| of the head
  double score_hull = 0;            ///< largest sum |q_c k_jc| over all admissible keys, also those of x = -inf by their bias
  double hull_without_weight = 0;   ///< the same over the keys of x = -inf
  double factor_without_weight = 0; ///< largest |factor_j| over those
  double logit_without_weight = 0;  ///< largest |factor_j| sum |q_c k_jc| over those
  double max_logit = 0;             ///< x_max
  double min_logit = 0;
  double sum = 0;                   ///< L = sum exp(x_j - x_max) over the keys, >= about 1
  double denominator = 0;           ///< L + exp(sink - x_max)
  double lse = 0;                   ///< natural, as declared (with or without the sink)
  double lse_radius = 0;            ///< natural
  double effective_keys = 0;        ///< (sum p)^2 / sum p^2
  std::vector<double> o, o_radius;  ///< [dv]
  std::vector<double> abs_p;        ///< [dv] at least sum p_j |v_scale_j v_jc|, within 2^-9
};

/// Replaces the majorants |q| |k_j| in `magnitude` and `score_hull` by the sums themselves.
void make_magnitudes_exact(const AttentionProblem& problem, RowAnalysis& row);

/// Bound of one row for one declared arithmetic (numerics.md 2.2 to 2.7 with the corrections of 2.14).
struct RowBound {
  std::vector<double> o_tau;        ///< [dv]
  double lse_tau = 0;               ///< in the declared base
  std::string out_of_range;         ///< empty: every declared intermediate stays inside its format
  double infinite_v_depth = 0;      ///< beyond this D_j a P may have become 0, so that 0 * inf = NaN is legal
  bool needs_keys = false;          ///< nothing else is set: the row must be described first
};

/// T0. Where the cheap majorants (abs_p and the head's largest |v| instead of a pass over all v_j) would widen tau by more than an
/// eighth, it makes that pass.
RowBound bound_row(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic);

/// LSE bound, in the declared base, of a row whose only finite logit is the sink's: bound_row has no say there.
double lone_sink_tau(double sink, const AttentionParams& params, const Arithmetic& arithmetic);

/// The sentences a report prints under "assumptions" for bounds made by bound_row.
std::vector<std::string> bound_assumptions(const Arithmetic& arithmetic);

/// Calls visit(r, analysis) in the order of `rows` for those rows r of problem.rows() that have finite logits (or are uniform).
/// The analysis is described, and valid during the call only.
void analyse_rows(const AttentionProblem& problem, std::span<const std::size_t> rows,
                  const std::function<void(std::size_t, const RowAnalysis&)>& visit);

/// T1 or T2 of one row: a second acceptance set under declared structure (numerics.md 2.4, (O2)).
struct RowTier {
  std::vector<double> mid, tau;   ///< [dv]; tau covers fp64's own error; +inf: the level says nothing about the element
  double lse_mid = 0;             ///< in the declared base
  double lse_tau = std::numeric_limits<double>::infinity();
};

/// Whether the declaration names all the structure that `level` (T1 or T2) replays for these parameters.
bool tier_applies(const AttentionParams& params, const Arithmetic& arithmetic, Level level);

/// Replays rows of one problem under one declared arithmetic; keeps what it has prepared of a head. One per thread. Only for
/// levels that apply; `t0` is the row's own bound.
class TierReplay {
 public:
  TierReplay(const AttentionProblem& problem, const Arithmetic& arithmetic);
  ~TierReplay();
  TierReplay(const TierReplay&) = delete;
  TierReplay& operator=(const TierReplay&) = delete;
  RowTier tier(const RowAnalysis& row, const RowBound& t0, Level level);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The sentences that T1 and T2 rest on besides those of bound_assumptions.
std::vector<std::string> tier_assumptions(const Arithmetic& arithmetic, Level level);

/// Op::bound_terms and Op::infer of attention.
std::vector<BoundTerm> attention_bound_terms(const Problem& problem, const Arithmetic& arithmetic);
std::optional<Inference> attention_infer(const Problem& problem, const Arithmetic& declared, const std::vector<Tensor>& outputs);

}  // namespace assay
