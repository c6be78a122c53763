// Measurement: what the outputs are relative to truth and bound; numbers only, no opinions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/op.h"

namespace assay {

/// One element, for reports.
struct ElementReport {
  std::int64_t element = -1;   ///< position in the output's storage; -1 = none
  std::int64_t at = -1;        ///< index into the parallel arrays of OutputTruth
  std::int32_t row = -1;
  std::uint64_t code = 0;
  double value = 0, mid = 0, radius = 0, tau = 0;
  double error = 0;            ///< |value - mid|; NaN if value is not finite
  /// How much of the tolerance was used: the smallest factor f such that [RN(mid - f tau), RN(mid + f tau)] holds the
  /// value, by bisection; 0 when the value is RN(mid); +inf for a wrong class.
  double used = 0;
  bool rejected = false;
};

/// One output under one further level. Reports hold its mid and tau; elements that the level says nothing about (tau = +inf, or a
/// class) are not judged by it.
struct TierMeasure {
  Level level = Level::kT1;
  std::int64_t judged = 0;
  std::int64_t rejected = 0;       ///< outside the level's set, whether or not inside T0's
  std::int64_t bit_equal = 0;      ///< equal to the level's rounded mid
  double median_tau = 0, median_tau_ulp = 0;
  double gain = 0, gain_error = 0; ///< slope of value - mid on mid over the judged normal elements, and its standard error
  double gain_budget = 0;          ///< the largest slope that errors inside tau allow before output rounding
  ElementReport worst;
};

struct RowMeasure {
  /// `rejected`: at any level.
  std::int32_t rejected = 0, nan = 0, inf = 0, zero = 0, judged = 0;
  std::int32_t canary = 0;     ///< elements that still hold the canary
  double worst_used = 0;
};

struct OutputMeasure {
  std::string role;
  std::int64_t judged = 0, rejected = 0, unconstrained = 0, uncertain = 0;  ///< rejected: by T0
  std::int64_t nan = 0, inf = 0, zero = 0, canary = 0;
  std::int64_t bit_equal = 0;  ///< elements equal to the correctly rounded truth
  double max_error = 0;        ///< over finite elements
  double max_ulp_error = 0;    ///< distance to the rounded truth in output ulps, over finite elements
  double median_tau = 0;
  double median_tau_ulp = 0;   ///< of tau over the output format's ulp at mid
  ElementReport worst;         ///< largest `used`
  std::vector<TierMeasure> tiers;  ///< parallel to Bound::tiers, without those that judge none of its elements
  std::vector<RowMeasure> rows;  ///< parallel to Truth::rows
};

struct Measurement {
  std::vector<OutputMeasure> outputs;
  std::int64_t rows = 0, rows_out_of_range = 0, rows_empty = 0, rows_escalated = 0;
  std::string out_of_range;    ///< the first row's reason
};

Measurement measure(const Evaluation& evaluation, const std::vector<Tensor>& outputs);

std::string_view level_name(Level level);  ///< "T0", "T1", "T2"

/// Whether code is legal for element i (index into OutputTruth's arrays) of an output at every level of the evaluation.
bool accepted(const Evaluation& evaluation, std::size_t output, std::size_t i, std::uint64_t code);

/// True if the case could not have failed: the all-zero or the negated output would be accepted everywhere.
bool is_vacuous(const Evaluation& evaluation);

}  // namespace assay
