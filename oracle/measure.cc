// Compares output codes with truth and bound, element by element.
#include "oracle/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/accept.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

ClassSet legal_classes(const OutputTruth& truth, const OutputBound& bound, std::size_t i) {
  return truth.classes[i] | bound.also[i];
}

Acceptance set_of(const OutputTruth& truth, const OutputBound& bound, std::size_t i) {
  return acceptance(truth.layout.format, legal_classes(truth, bound, i), truth.mid[i], truth.radius[i], bound.tau[i]);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

OutputMeasure measure_output(const OutputTruth& truth, const OutputBound& bound, const Tensor& output,
                             std::size_t rows) {
  OutputMeasure m;
  m.role = truth.layout.role;
  m.rows.resize(rows);
  const Format format = truth.layout.format;
  std::vector<double> taus;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    const std::uint64_t code = load_code(output.bytes.data(), format, truth.element[i]);
    RowMeasure& row = m.rows[static_cast<std::size_t>(truth.row[i])];
    const ClassSet classes = legal_classes(truth, bound, i);
    const bool nan = is_nan(format, code), inf = is_infinite(format, code), zero = is_zero(format, code);
    const bool canary = code == canary_code(format);
    ++m.judged, ++row.judged;
    m.nan += nan, m.inf += inf, m.zero += zero, m.canary += canary;
    row.nan += nan, row.inf += inf, row.zero += zero, row.canary += canary;
    if (classes == kAnything) {
      ++m.unconstrained;
      continue;
    }
    const bool number = (classes & kNumber) != 0;
    if (number) taus.push_back(bound.tau[i]);
    if (number && !(truth.radius[i] < kInf)) ++m.uncertain;
    const bool rejected = !accepts(set_of(truth, bound, i), code) || canary;
    const double used = tolerance_used(format, classes, truth.mid[i], truth.radius[i], bound.tau[i], code);
    const double value = decode(format, code);
    double error = std::numeric_limits<double>::quiet_NaN();
    if (number && std::isfinite(value)) {
      error = std::abs(value - truth.mid[i]);
      const double rounded = round_to(format, truth.mid[i]);
      m.bit_equal += value == rounded;
      m.max_error = std::max(m.max_error, error);
      m.max_ulp_error = std::max(m.max_ulp_error, std::abs(value - rounded) / ulp(format, truth.mid[i]));
    } else if (!rejected) {
      ++m.bit_equal;
    }
    m.rejected += rejected, row.rejected += rejected;
    row.worst_used = std::max(row.worst_used, used);
    const bool first = m.worst.element < 0;
    if (first || rejected > m.worst.rejected || (rejected == m.worst.rejected && used > m.worst.used))
      m.worst = {truth.element[i], static_cast<std::int64_t>(i), truth.row[i], code, value, truth.mid[i],
                 truth.radius[i], bound.tau[i], error, used, rejected};
  }
  m.median_tau = median(std::move(taus));
  return m;
}

}  // namespace

Measurement measure(const Evaluation& evaluation, const std::vector<Tensor>& outputs) {
  const Truth& truth = evaluation.truth;
  Measurement m;
  m.rows = static_cast<std::int64_t>(truth.rows.size());
  for (std::size_t r = 0; r < truth.rows.size(); ++r) {
    m.rows_empty += truth.rows[r].keys == 0;
    m.rows_escalated += truth.rows[r].escalated;
    const std::string& reason = evaluation.bound.out_of_range[r];
    m.rows_out_of_range += !reason.empty();
    if (m.out_of_range.empty()) m.out_of_range = reason;
  }
  for (std::size_t k = 0; k < truth.outputs.size(); ++k)
    m.outputs.push_back(measure_output(truth.outputs[k], evaluation.bound.outputs[k], outputs[k], truth.rows.size()));
  return m;
}

bool is_vacuous(const Evaluation& evaluation) {
  const OutputTruth& truth = evaluation.truth.outputs.front();
  const OutputBound& bound = evaluation.bound.outputs.front();
  const Format format = truth.layout.format;
  bool zero_passes = true, negated_passes = true;
  for (std::size_t i = 0; i < truth.element.size() && (zero_passes || negated_passes); ++i) {
    const Acceptance set = set_of(truth, bound, i);
    zero_passes = zero_passes && accepts(set, 0);
    // The negation of a NaN or of an infinity that is required is a NaN, or the other infinity.
    if (set.classes & kNumber) negated_passes = negated_passes && accepts(set, encode(format, -truth.mid[i]));
    else if (set.classes & (kPlusInf | kMinusInf)) negated_passes = false;
  }
  return zero_passes || negated_passes;
}

}  // namespace assay
