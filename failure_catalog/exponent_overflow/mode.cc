// M04: an exponent that should be at most zero is not: a shift with two roundings, a missing shift, or a column behind
// the last key scored 0.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "failure_catalog/row_extent.h"
#include "failure_catalog/second_run.h"

namespace assay {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep0;
constexpr double kTop = 128 / kLog2E;     // e^x passes fp32's largest number
constexpr double kBottom = 126 / kLog2E;  // e^-x becomes subnormal
constexpr double kBitsOfShift = 64;       // rounding of the shift that moves exponents by that much

struct Row {
  std::size_t row = 0;
  double largest = 0;  ///< logit, a sink counted
  std::int64_t length = 0;
  RowExtent extent;
  bool fails = false;
};

bool has_numbers(const Truth& truth, std::size_t row) {
  return std::any_of(truth.outputs.begin(), truth.outputs.end(), [&](const OutputTruth& output) {
    const auto per_row = static_cast<std::ptrdiff_t>(output.classes.size() / truth.rows.size());
    const auto first = output.classes.begin() + static_cast<std::ptrdiff_t>(row) * per_row;
    return std::any_of(first, first + per_row, [](ClassSet c) { return (c & (kNumber | kZero)) != 0; });
  });
}

/// Rows that the trial samples and that have a finite logit.
std::vector<Row> rows_of(const Scene& scene) {
  std::vector<Row> rows;
  for (const std::size_t r : scene.trial().rows()) {
    if (!has_numbers(scene.evaluation.truth, r)) continue;  // NaN by its inputs, whatever the exponents
    RowExtent extent = row_extent(scene, r, true);
    if (extent.key.empty()) continue;
    double largest = *std::max_element(extent.logit.begin(), extent.logit.end());
    if (!std::isfinite(largest)) continue;
    if (AttentionView* view = scene.attention(); view != nullptr)
      largest = std::max(largest, view->problem.sink(view->row(r)));
    const std::int64_t length = extent.length;
    rows.push_back({r, largest, length, std::move(extent), row_fails(scene.measurement, r)});
  }
  return rows;
}

/// Largest logit of the row in the last, partial tile; NaN without one.
double tail_maximum(const Row& row, std::int64_t tile) {
  if (row.length % tile == 0) return std::numeric_limits<double>::quiet_NaN();
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < row.extent.key.size(); ++j)
    if (row.extent.key[j] >= row.length / tile * tile) largest = std::max(largest, row.extent.logit[j]);
  return largest;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) { low = std::min(low, x), high = std::max(high, x); }
  double extreme() const { return -low > high ? low : high; }
};

std::string text(const Range& range) {
  return range.low == range.high ? fmt::format("{:.6g}", range.low)
                                 : fmt::format("{:.6g} to {:.6g}", range.low, range.high);
}

/// A law that fits, and the experiment that proves it: with all logits scaled, the failing row whose quantity is
/// `value` must be right where that becomes `right_at`, and wrong where it becomes `wrong_at` (0: not asked).
struct Law {
  std::string why;
  double value = 0, wrong_at = 0, right_at = 0;
  bool finite_is_enough = false;  ///< at `right_at`: weights without a shift lose digits before they overflow
};

std::optional<Law> missing_shift(const std::vector<Row>& rows) {
  Range bad;
  for (const Row& row : rows) {
    const bool outside = row.largest > kTop - 12 || row.largest < -kBottom + 12;
    const bool far_outside = row.largest > kTop || row.largest < -110;
    if (row.fails ? !outside : far_outside) return std::nullopt;
    if (row.fails) bad.add(row.largest);
  }
  const double sign = bad.extreme() < 0 ? -1 : 1;
  return Law{
      fmt::format("their largest logits are {}, and exp(x) without a shift leaves fp32 above {:.1f} and below -{:.1f}",
                  text(bad), kTop, kBottom),
      bad.extreme(), sign * 115, sign * 40, true};
}

std::optional<Law> tail_scored_zero(const std::vector<Row>& rows) {
  for (const std::int64_t tile : {128, 64, 32, 16, 256}) {
    Range bad;
    const bool holds = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
      const double largest = tail_maximum(row, tile);
      if (row.fails) bad.add(largest);
      return row.fails == (largest < -kTop && std::isfinite(largest));
    });
    if (holds)
      return Law{
          fmt::format("their largest logits in the last, partial key tile of {} are {}: columns behind the last key "
                      "scored 0 overflow in exp(0 - maximum) below -{:.1f}",
                      tile, text(bad), kTop),
          bad.low, -kTop - 3, -kTop + 3};
  }
  return std::nullopt;
}

std::optional<Law> two_roundings(const std::vector<Row>& rows) {
  Range bad;
  for (const Row& row : rows) {
    const double bits = std::abs(row.largest) * kLog2E * 0x1p-24;
    if (row.fails && bits < kBitsOfShift) return std::nullopt;
    if (row.fails) bad.add(row.largest);
  }
  return Law{
      fmt::format("their largest logits are {}: rounding m log2 e to fp32 moves the exponents by up to {:.4g}, unless "
                  "every element is shifted with the same rounding",
                  text(bad), std::abs(bad.extreme()) * kLog2E * 0x1p-24),
      bad.extreme(), 0, bad.extreme() < 0 ? -1e6 : 1e6};
}

struct Outcome {
  bool fails = false, finite = true;  ///< right, or finite and not all zeros
};

/// What the row becomes with all logits times the factor.
std::optional<Outcome> outcome_with(const Scene& scene, std::size_t row, double factor) {
  const std::optional<Measurement> run = second_run(scene, with_logits_times(scene.problem, factor));
  if (!run) return std::nullopt;
  Outcome outcome{row_fails(*run, row), true};
  for (const OutputMeasure& output : run->outputs)
    outcome.finite = outcome.finite && (!outcome.fails || (output.rows[row].nan == 0 && output.rows[row].inf == 0 &&
                                                           output.rows[row].zero < output.rows[row].judged));
  return outcome;
}

/// The failing row with the largest quantity.
std::size_t extreme_row(const std::vector<Row>& rows, double value) {
  for (const Row& row : rows)
    for (const std::int64_t tile : {128, 64, 32, 16, 256})
      if (row.fails && (row.largest == value || tail_maximum(row, tile) == value)) return row.row;
  return rows.front().row;
}

/// Nothing where the kernel cannot be asked.
std::optional<bool> proven(const Scene& scene, const std::vector<Row>& rows, const Law& law) {
  const std::size_t row = extreme_row(rows, law.value);
  const std::optional<Outcome> low = outcome_with(scene, row, law.right_at / law.value);
  if (!low) return std::nullopt;
  if (law.wrong_at == 0) return !low->fails;
  const std::optional<Outcome> high = outcome_with(scene, row, law.wrong_at / law.value);
  if (!high) return std::nullopt;
  return (law.finite_is_enough ? low->finite : !low->fails) && !high->finite;
}

/// Every rejected element is not finite, or belongs to a row whose largest logit is extreme.
std::optional<Diagnosis> detect(const Scene& scene) {
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  bool overflown = !bad.empty();
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    const double largest = scene.evaluation.truth.rows[static_cast<std::size_t>(truth.row[i])].max_logit;
    const Format format = truth.layout.format;
    overflown =
        overflown && (!is_finite(format, code) || std::abs(largest) > kBottom - 12) && code != canary_code(format);
  });
  if (!overflown) return std::nullopt;
  const std::vector<Row> rows = rows_of(scene);
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.fails; })) return std::nullopt;
  for (const auto law_of : {tail_scored_zero, two_roundings, missing_shift}) {
    const std::optional<Law> law = law_of(rows);
    if (!law) continue;
    const std::optional<bool> proof = proven(scene, rows, *law);
    if (proof == false) continue;
    std::string evidence =
        fmt::format("{} rows are wrong (first: {}); {}", bad.size(), row_name(scene, bad[0]), law->why);
    if (proof)
      evidence += fmt::format("; scaled to {:.6g} it is {}", law->right_at, law->finite_is_enough ? "finite" : "right");
    if (proof && law->wrong_at != 0) evidence += fmt::format(", to {:.6g} not", law->wrong_at);
    return Diagnosis{proof ? 0.98 : 0.93, evidence};
  }
  return std::nullopt;
}

const RegisterMode kRegister(
    {.name = "exponent_overflow", .id = "M04", .title = "An exponent above its range", .detect = detect});

}  // namespace
}  // namespace assay
