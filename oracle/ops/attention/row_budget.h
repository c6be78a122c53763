// T0 of one attention row in parts: log-weight errors, records of the maximum, ranges, output, LSE. Derivation in
// budget.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle/budget.h"
#include "oracle/function_errors.h"
#include "oracle/ops/attention/analysis.h"

namespace assay {

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLog2E = 0x1.71547652b82fep0;
inline constexpr double kSlack =
    1 + 0x1p-8;  ///< products of two first-order terms, and fp64 rounding of the bound itself

/// A share of eps_j, at most  magnitude A_j + linear |y_j| + capped min(|y_j|, softcap) + depth D_j + constant.
struct LogError {
  double magnitude = 0, linear = 0, capped = 0, depth = 0, constant = 0;
  LogError& operator+=(const LogError& other);
};

/// The shares of eps_j by source; they add up.
struct LogErrors {
  LogError accumulation;  ///< of QK^T, whatever the order
  LogError qk;            ///< storage of S, flushed operands
  LogError logit;         ///< scale, factors, soft cap, bias: what happens before the maximum
  LogError exp;           ///< the constant, the subtraction, shifts, exponentials
  LogError merge;         ///< the weight of the key's split
};

/// What the arithmetic says about P for these parameters; the worst member where it is not declared.
struct WeightFormat {
  Format format = Format::kFp32;  ///< narrowest that P may be rounded to
  double unit_roundoff = 0;       ///< 0: P is not rounded
  int offset = 0;
  int lazy = 0;  ///< log2 of how far P may exceed 2^offset
};
WeightFormat weight_format(const AttentionParams& params, const Arithmetic& arithmetic);

/// How many runs of `size` cover `count`.
inline double pieces(std::int64_t count, std::int64_t size) { return static_cast<double>((count + size - 1) / size); }

/// Relative error of the division by the row sum, and of the value factor and the sink's share where there are any.
double normalize_error(const AttentionParams& params, const Arithmetic& arithmetic);
/// Format of the operands of P V.
Format value_operand(const AttentionParams& params, const Arithmetic& arithmetic);

/// The error of P V accumulated over a row: any order of blocks, promoted or not, normalised at every step or not.
struct ValueAccumulation {
  AccumulationError chain;  ///< of the products
  double added = 0;         ///< roundings of partial sums, relative to sum p |v|
};

/// Tau's shares before output rounding, of each channel and then of the LSE: what bound_terms prints. Where tau is the
/// hull of V or infinite, no source explains it and `hull` holds it.
struct TermShares {
  std::vector<double> qk, exp, p, pv, merge, normalise, subnormals, hull;
};

class RowBudget {
 public:
  RowBudget(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic);

  /// Fills `shares` too if it is given.
  RowBound bound(TermShares* shares = nullptr);
  /// The coefficients alone; `magnitude` counts sum |q_c k_jc| times |factor_j|.
  const LogErrors& errors();
  double sink_error(double rescales) const;

  // For bounds under declared structure; after `errors` or `bound`.
  /// What an LSE's error has besides its weights and row sum. Natural units; tau is in the declared base.
  struct LseEnd {
    double logarithm = 0, scaled = 0, merge = 0, base = 0, unit = 1;
    double tau(double weights) const;
  };
  LseEnd lse_end() const;
  const WeightFormat& weight() const { return weight_; }
  double exponential() const { return ex2_; }
  bool has_sink() const { return row_.sink_p > 0 || row_.sink > -kMax32; }
  ValueAccumulation value_accumulation() const;

 private:
  // budget_weights.cc
  void log_errors();
  struct Sources {
    double qk = 0, exp = 0, merge = 0;
  };
  Sources sources() const;
  void weigh_keys();
  void weigh_by_sums(const LogError& all);
  void weigh_sink();
  double excess_weight(std::size_t j, double eps) const;
  double lse_weights() const;

  // budget_records.cc
  void count_records();
  void count_records_by_sums();

  // budget_range.cc
  void find_range(RowBound& bound);
  double before_bias() const;

  // budget_output.cc
  struct Channels;
  Channels cheap_channels();
  Channels exact_channels(Channels cheap) const;
  std::vector<double> deviations(const std::vector<double>& weight, const std::vector<double>& o) const;
  std::vector<double> hulls() const;
  bool output(const Channels& channels, bool may_refine, RowBound& bound);
  void outputs(RowBound& bound);
  double blocks(int k) const;

  // budget.cc
  double lse_bound();
  double row_sum_chain() const;
  bool contiguous() const;
  bool has_bias() const { return !row_.bias.empty() && !row_.uniform; }
  bool split() const { return arith_.splits != 1; }
  bool listed() const { return params_.data_mask == DataMask::kList && !row_.uniform; }
  bool single_tile() const;
  bool running() const { return arith_.max_policy != MaxPolicy::kGlobal && n_ > 1 && !single_tile(); }
  bool own_tile() const { return arith_.max_policy == MaxPolicy::kOwnTile || arith_.max_policy == MaxPolicy::kUnknown; }
  bool every_step() const {
    return arith_.normalize == Normalize::kEveryStep || arith_.normalize == Normalize::kUnknown;
  }
  double tiles() const;
  double value_factor(std::size_t j) const;

  const RowAnalysis& row_;
  const AttentionParams& params_;
  const Arithmetic arith_;  ///< without a tile where tiles are not counted from key 0
  std::size_t n_;
  WeightFormat weight_;
  double ex2_;  ///< eps_ex2
  LogErrors errors_;
  std::vector<double> scaled_;         ///< |factor_j| A_j where the factor differs from key to key
  const double* magnitude_ = nullptr;  ///< A_j, or scaled_
  double magnitude_factor_ = 1;        ///< what `magnitude_` still lacks to be the logit's
  double top_ = 0;                     ///< largest |M| at the end: max(|x_max|, |sink|)
  double above_ = 0;                   ///< S+: how far the sink lies above x_max
  double sink_error_ = 0;              ///< eps of the sink
  double ln_n_ = 0;
  std::vector<double> eps_;    ///< eps_j
  std::vector<double> psi_p_;  ///< p_j psi_j
  double eps_max_ = 0;
  double psi_keys_ = 0;    ///< sum p_j psi_j over the keys
  double psi_sink_ = 0;    ///< the sink's p psi
  double psi_square_ = 0;  ///< sum p_j psi_j^2 over the keys
  struct Cut {
    double at = 0, excess = 0;
  };
  std::array<Cut, 3> cuts_{};             ///< sum p_j max(psi_j - at, 0)
  double rescales_ = 0;                   ///< R: how often O and l may be rescaled
  double largest_max_ = 0;                ///< largest |M_t| that may be subtracted
  double sum_error_ = 0;                  ///< s_l
  double shift_ = 0;                      ///< residual exponent (log2) that P of the maximum may carry
  double factor_high_ = 1;                ///< largest |v_scale_j|
  double factor_low_ = 1, p_factor_ = 1;  ///< range of what may multiply P: v_scale_j that differ between keys, and 1
  double floor_scale_ = 1;  ///< what 1 in P's unit at the last maximum is as a weight relative to the largest logit's
  bool needs_keys_ = false;  ///< the row's sums say too little, and its arrays are not filled
  TermShares* shares_ = nullptr;
};

}  // namespace assay
