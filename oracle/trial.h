// Trial: holds what a hypothesis of a fault predicts against what a kernel returned, in units of noise, on sampled
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/truth.h"

namespace assay {

/// What a kernel would return for one row, before output rounding.
struct RowOutput {
  std::vector<double> o;  ///< [dv]; zeros without keys
  double lse = 0;         ///< in the declared base; -inf without keys and sink
  /// [dv] sum of p_j^2 v_j^2: what the rounding of P makes of a row. Empty: P has no rounding here.
  std::vector<double> spread = {};
  std::vector<double> m = {}, l = {};  ///< states of the softmax recurrence, where the op shows them
  /// [dv] channels that may be NaN as well (a kernel may multiply a NaN by a weight of 0). Empty: none.
  std::vector<bool> or_nan = {};
  bool lse_or_nan = false;
};

/// How well one hypothesis explains the outputs. Residuals are e - d: e = y - centre, where the centre is that of the
/// highest level that says something about the element (OutputTier::mid, else the truth), and d = predicted - truth.
/// So faults far below T0's tolerance count as well as gross ones.
struct Fit {
  std::int64_t loud = 0, quiet = 0;  ///< elements that some level rejects, and the others
  std::int64_t loud_explained = 0;   ///< residual within noise
  std::int64_t quiet_explained = 0;  ///< no error predicted where there is none
  double before = 0, after = 0;      ///< sum of squared residuals in units of noise, without and with the hypothesis
  double expected = 0;               ///< of a perfect hypothesis, at most: noise is estimated from above
  double quiet_before = 0;           ///< the share of `before` that elements have which no level rejects
  std::int64_t loud_lse = 0, lse_explained = 0;  ///< of the loud ones, those of outputs behind the first
  std::vector<double> predicted = {};            ///< d per sampled element; NaN: a class
  /// Of the output that is explained worse.
  double loud_share() const;
  double quiet_share() const {
    return quiet == 0 ? 1 : static_cast<double>(quiet_explained) / static_cast<double>(quiet);
  }
  /// Share of the squared residual in excess of noise that the hypothesis removes; 1 is all.
  double removed() const;
  /// The acceptance rule: nearly all wrong elements are explained, nearly no right one is said to be wrong, and most of
  /// the excess is gone.
  bool explains() const;
  static constexpr double kNearlyAll = 0.9;
  static constexpr double kCap = 100;  ///< residuals count as at most so many units: one wild element is not everything
};

/// A parameter of a hypothesis, searched on a grid of so many points and then refined (`whole`: integers only).
struct Parameter {
  double low = 0, high = 1;
  int grid = 17;
  bool whole = false;
};
struct FitAt {
  Fit fit;
  double value = 0;
  double standard_error = 0;  ///< from the curvature of `after`, scaled by the residuals where they exceed noise
  double budget = 0;          ///< by how much errors inside tau, all in the direction that hurts, could shift the value
};

/// What a matched filter says about a parameter: least squares of the outputs' errors on their tangent.
struct Filtered {
  std::int64_t elements = 0;
  double value = 0;
  double standard_error = 0;  ///< of the rounding of outputs and of P
  double budget = 0;          ///< by how much errors inside tau, all in the direction that hurts, could shift the value
  double drop = 0;            ///< what the parameter takes off the sum of squared errors in units of noise
};

class Trial {
 public:
  /// The outputs of a row under the hypothesis; nothing: it leaves the row alone. `row` is an index into Truth::rows.
  using Predict = std::function<std::optional<RowOutput>(std::size_t row)>;
  using PredictAt = std::function<std::optional<RowOutput>(std::size_t row, double parameter)>;

  /// `p_unit`: unit roundoff of P's format, 0 if P is not rounded. `most_rows`: how many rows are sampled, half of them
  /// among those with a rejected element. The evaluation must outlive the trial.
  Trial(const Evaluation& evaluation, const std::vector<Tensor>& outputs, double p_unit, std::size_t most_rows);

  /// Sampled rows, indices into Truth::rows: rows with a rejected element first, each kind spread over the whole list.
  const std::vector<std::size_t>& rows() const { return rows_; }
  /// Of them, those with a rejected element.
  std::size_t failing_rows() const { return failing_; }
  bool fails(std::size_t row) const { return row_fails_[row]; }  ///< any row, sampled or not
  /// Over how many of the sampled failing rows the squared error of numbers is spread: 1 if one row has it all, their
  /// number if all have as much (participation ratio). NaN and infinities tell little of a fault and do not count.
  double spread() const;

  /// e and its noise, per channel and for the LSE; NaN where a class stands or stood, empty or NaN for an output that
  /// the case does not have. `n`: place in rows().
  struct Errors {
    std::vector<double> o, o_unit;
    double lse = std::numeric_limits<double>::quiet_NaN(), lse_unit = 1;
  };
  Errors errors(std::size_t n) const;

  /// A hypothesis that cannot explain the first failing rows is given up there: its Fit then holds those rows only.
  Fit fit(const Predict& predict) const;
  /// The best value of a parameter; the search looks at few rows, the result at all.
  FitAt fit(const PredictAt& predict, const Parameter& parameter) const;

  /// `tangent`: dO/dt of a row. `p_projection`: sum over the row's keys of p_j^2 (sum_c weight_c v_jc)^2, which makes
  /// the covariance of what P's rounding leaves where no level replays it. Elements of the first output alone.
  using Projection = std::function<double(std::size_t row, const std::vector<double>& weight)>;
  Filtered filter(const Predict& tangent, const Projection& p_projection) const;

  /// Whether the two predictions differ on this input by more than noise. If not, no output can tell them apart here.
  bool tells_apart(const Fit& a, const Fit& b) const;

 private:
  enum class Kind : std::uint8_t { kOutput, kLse, kMaximum, kSum };
  struct Element {
    Kind kind = Kind::kOutput;
    std::size_t channel = 0;
    double value = 0, centre = 0, truth = 0;
    double unit = 0;               ///< noise: rounding of the output, and a third of the level's tau
    double slack = 0;              ///< tau of the level and half an ulp
    double rounding = 0, tau = 0;  ///< standard deviation of the output's rounding; tau of the level
    std::uint64_t code = 0;
    bool replayed = false;  ///< the centre is that of a level above T0
    bool number = true;     ///< the truth is one
    bool rejected = false, canary = false;
  };
  struct Sampled {
    std::vector<Element> elements;
  };
  void sample(const Evaluation& evaluation, std::size_t most_rows);
  Sampled read(const Evaluation& evaluation, const std::vector<Tensor>& outputs, std::size_t row) const;
  void add(const Sampled& row, const std::optional<RowOutput>& prediction, Fit& fit) const;
  static double predicted(const Element& e, const RowOutput& prediction);
  double noise(const Element& e, const std::optional<RowOutput>& prediction) const;
  Fit fit_rows(const Predict& predict, std::size_t rows) const;
  class Search;
  double budget(const Fit& low, const Fit& high, double apart) const;

  double p_unit_;
  std::vector<bool> row_fails_;
  std::vector<std::pair<std::size_t, std::size_t>> first_;  ///< [output][row] as begin, end of its elements
  std::vector<std::size_t> rows_;
  std::size_t failing_ = 0;
  std::int64_t loud_ = 0, loud_lse_ = 0;  ///< rejected elements of the samples; of them, not of the first output
  std::vector<Sampled> samples_;          ///< parallel to rows_
};

}  // namespace assay
