// Compares output codes with truth and bound, element by element.
#include "oracle/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_set>

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

bool is_number(const OutputTruth& truth, const OutputBound& bound, std::size_t i) {
  const ClassSet classes = legal_classes(truth, bound, i);
  return (classes & kNumber) != 0 && classes != kAnything;
}

/// The tier's set of an element that must be a number; the other classes stay legal.
Acceptance set_of(const OutputTruth& truth, const OutputBound& bound, const OutputTier& tier, std::size_t i) {
  return acceptance(truth.layout.format, legal_classes(truth, bound, i), tier.mid[i], 0, tier.tau[i]);
}

bool judges(const OutputTruth& truth, const OutputBound& bound, const OutputTier& tier, std::size_t i) {
  return !tier.tau.empty() && tier.tau[i] < kInf && is_number(truth, bound, i);
}

ElementReport report(const OutputTruth& truth, std::size_t i, std::uint64_t code, double mid, double radius, double tau,
                     double used, bool rejected) {
  const double value = decode(truth.layout.format, code);
  const double error = std::isfinite(value) ? std::abs(value - mid) : std::numeric_limits<double>::quiet_NaN();
  return {truth.element[i], static_cast<std::int64_t>(i), truth.row[i], code, value, mid, radius, tau, error, used, rejected};
}

bool is_worse(const ElementReport& a, const ElementReport& b) {
  return b.element < 0 || a.rejected > b.rejected || (a.rejected == b.rejected && a.used > b.used);
}

/// Least squares through the origin of e = value - mid on mid, elements weighted by 1 / ulp^2, since rounding to the output format
/// is their noise beyond tau. Equal values round equally, so that noise, ulp / sqrt(12) each, counts once per distinct code; the
/// residuals give the error where they are larger.
class Slope {
 public:
  void add(double mid, double e, double tau, double unit, std::uint64_t code) {
    const double x = mid / unit, y = e / unit;
    xx_ += x * x, xy_ += x * y, yy_ += y * y, reach_ += std::abs(x) * tau / unit, n_ += 1;
    codes_.insert(code);
  }
  double gain() const { return xx_ > 0 ? xy_ / xx_ : 0; }
  double error() const {
    if (!(n_ > 1 && xx_ > 0)) return kInf;
    const double scatter = std::max(0.0, yy_ - xy_ * gain()) / (n_ - 1);
    const double rounding = n_ / static_cast<double>(codes_.size()) / 12;
    return std::sqrt(std::max(scatter, rounding) / xx_);
  }
  double budget() const { return xx_ > 0 ? reach_ / xx_ : kInf; }

 private:
  double xx_ = 0, xy_ = 0, yy_ = 0, reach_ = 0, n_ = 0;
  std::unordered_set<std::uint64_t> codes_;
};

/// `failed`: by element, set where the tier rejects it.
TierMeasure measure_tier(Level level, const OutputTruth& truth, const OutputBound& bound, const OutputTier& tier,
                         const Tensor& output, std::vector<std::uint8_t>& failed) {
  TierMeasure m;
  m.level = level;
  const Format format = truth.layout.format;
  std::vector<double> taus, ulps;
  Slope slope;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    if (!judges(truth, bound, tier, i)) continue;
    const std::uint64_t code = load_code(output.bytes.data(), format, truth.element[i]);
    const bool rejected = !accepts(set_of(truth, bound, tier, i), code);
    const double used = tolerance_used(format, legal_classes(truth, bound, i), tier.mid[i], 0, tier.tau[i], code);
    const double unit = ulp(format, tier.mid[i]);
    ++m.judged;
    m.rejected += rejected;
    failed[i] |= rejected;
    m.bit_equal += code == encode(format, tier.mid[i]);
    taus.push_back(tier.tau[i]);
    ulps.push_back(tier.tau[i] / unit);
    const ElementReport element = report(truth, i, code, tier.mid[i], 0, tier.tau[i], used, rejected);
    if (std::isfinite(element.error) && std::abs(tier.mid[i]) >= info(format).min_normal)
      slope.add(tier.mid[i], element.value - tier.mid[i], tier.tau[i], unit, code);
    if (is_worse(element, m.worst)) m.worst = element;
  }
  m.median_tau = median(std::move(taus));
  m.median_tau_ulp = median(std::move(ulps));
  m.gain = slope.gain();
  m.gain_error = slope.error();
  m.gain_budget = slope.budget();
  return m;
}

OutputMeasure measure_output(const Evaluation& evaluation, std::size_t which, const Tensor& output) {
  const OutputTruth& truth = evaluation.truth.outputs[which];
  const OutputBound& bound = evaluation.bound.outputs[which];
  OutputMeasure m;
  m.role = truth.layout.role;
  m.rows.resize(evaluation.truth.rows.size());
  const Format format = truth.layout.format;
  std::vector<double> taus, ulps;
  std::vector<std::uint8_t> failed(truth.element.size());  ///< at any level
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
    if (number) {
      taus.push_back(bound.tau[i]);
      ulps.push_back(bound.tau[i] / ulp(format, truth.mid[i]));
      m.uncertain += !(truth.radius[i] < kInf);
    }
    const bool rejected = !accepts(set_of(truth, bound, i), code) || canary;
    const double used = tolerance_used(format, classes, truth.mid[i], truth.radius[i], bound.tau[i], code);
    ElementReport element = report(truth, i, code, truth.mid[i], truth.radius[i], bound.tau[i], used, rejected);
    if (!number) element.error = std::numeric_limits<double>::quiet_NaN();
    if (std::isfinite(element.error)) {
      const double rounded = round_to(format, truth.mid[i]);
      m.bit_equal += element.value == rounded;
      m.max_error = std::max(m.max_error, element.error);
      m.max_ulp_error = std::max(m.max_ulp_error, std::abs(element.value - rounded) / ulp(format, truth.mid[i]));
    } else if (!rejected) {
      ++m.bit_equal;
    }
    m.rejected += rejected;
    failed[i] = rejected;
    row.worst_used = std::max(row.worst_used, used);
    if (is_worse(element, m.worst)) m.worst = element;
  }
  m.median_tau = median(std::move(taus));
  m.median_tau_ulp = median(std::move(ulps));
  for (const Tier& tier : evaluation.bound.tiers) {
    if (tier.outputs[which].tau.empty()) continue;
    const TierMeasure measured = measure_tier(tier.level, truth, bound, tier.outputs[which], output, failed);
    if (measured.judged > 0) m.tiers.push_back(measured);
  }
  for (std::size_t i = 0; i < failed.size(); ++i) m.rows[static_cast<std::size_t>(truth.row[i])].rejected += failed[i];
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
  for (std::size_t k = 0; k < truth.outputs.size(); ++k) m.outputs.push_back(measure_output(evaluation, k, outputs[k]));
  return m;
}

std::string_view level_name(Level level) {
  constexpr std::array<std::string_view, 3> kNames{"T0", "T1", "T2"};
  return kNames.at(static_cast<std::size_t>(level));
}

bool accepted(const Evaluation& evaluation, std::size_t output, std::size_t i, std::uint64_t code) {
  const OutputTruth& truth = evaluation.truth.outputs[output];
  const OutputBound& bound = evaluation.bound.outputs[output];
  if (!accepts(set_of(truth, bound, i), code)) return false;
  return std::all_of(evaluation.bound.tiers.begin(), evaluation.bound.tiers.end(), [&](const Tier& tier) {
    const OutputTier& t = tier.outputs[output];
    return !judges(truth, bound, t, i) || accepts(set_of(truth, bound, t, i), code);
  });
}

bool is_vacuous(const Evaluation& evaluation) {
  const OutputTruth& truth = evaluation.truth.outputs.front();
  const OutputBound& bound = evaluation.bound.outputs.front();
  const Format format = truth.layout.format;
  bool zero_passes = true, negated_passes = true;
  for (std::size_t i = 0; i < truth.element.size() && (zero_passes || negated_passes); ++i) {
    const ClassSet classes = legal_classes(truth, bound, i);
    zero_passes = zero_passes && accepted(evaluation, 0, i, 0);
    // The negation of a NaN or of an infinity that is required is a NaN, or the other infinity.
    if (classes & kNumber) negated_passes = negated_passes && accepted(evaluation, 0, i, encode(format, -truth.mid[i]));
    else if (classes & (kPlusInf | kMinusInf)) negated_passes = false;
  }
  return zero_passes || negated_passes;
}

}  // namespace assay
