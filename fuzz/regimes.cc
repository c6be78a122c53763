// Axes that every op has, from the facts of its rows and the classes of its outputs.
#include "fuzz/regimes.h"

#include <array>
#include <cmath>

namespace assay {
namespace {

enum Axis : std::size_t { kKeys, kLargest, kSpread, kEffective, kClasses, kAxes };

constexpr std::array kKeyLimits{1.0, 2.0, 16.0, 64.0, 256.0, 1024.0};
constexpr std::array kLogitLimits{-65504.0, -5e4, -1e3, -88.0, -20.0, -1.0, 1.0, 20.0, 88.0, 1e3, 5e4, 65504.0};
constexpr std::array kSpreadLimits{1e-6, 1.0, 8.0, 17.0, 24.0, 88.0, 104.0, 1e3, 1e5};
constexpr std::array kEffectiveLimits{1.001, 1.5, 4.0, 32.0, 256.0};
constexpr std::size_t kNanLogit = kLogitLimits.size() + 1, kNoWeight = kNanLogit + 1;

std::vector<RegimeAxis> common_axes() {
  std::vector<RegimeAxis> all(kAxes);
  all[kKeys] = {"terms of a row", {"0", "1", "2..15", "16..63", "64..255", "256..1023", "1024.."}};
  all[kLargest] = {"largest logit",
                   {"below -65504", "-65504..-5e4", "-5e4..-1e3", "-1e3..-88", "-88..-20", "-20..-1", "-1..1", "1..20",
                    "20..88", "88..1e3", "1e3..5e4", "5e4..65504", "65504..", "NaN", "-inf"}};
  all[kSpread] = {"spread of a row's logits",
                  {"0", "..1", "1..8", "8..17", "17..24", "24..88", "88..104", "104..1e3", "1e3..1e5", "1e5.."}};
  all[kEffective] = {"effective terms", {"1", "..1.5", "1.5..4", "4..32", "32..256", "256.."}};
  all[kClasses] = {"classes of output elements", {"number", "zero", "infinity", "NaN"}};
  return all;
}

void mark_row(const RowFacts& row, Regimes& reached) {
  reached.mark_below(kKeys, row.keys, kKeyLimits);
  if (row.keys == 0) return;
  if (std::isnan(row.max_logit) || row.max_logit == -INFINITY) {
    reached.mark(kLargest, std::isnan(row.max_logit) ? kNanLogit : kNoWeight);
    return;
  }
  reached.mark_below(kLargest, row.max_logit, kLogitLimits);
  reached.mark_below(kSpread, row.max_logit - row.min_logit, kSpreadLimits);
  reached.mark_below(kEffective, row.effective_keys, kEffectiveLimits);
}

}  // namespace

std::vector<RegimeAxis> regime_axes(const Op& op) {
  std::vector<RegimeAxis> all = common_axes();
  if (op.regime_axes != nullptr) all.insert(all.end(), op.regime_axes().begin(), op.regime_axes().end());
  return all;
}

Regimes regimes_of(const Op& op, const Problem& problem, const Arithmetic& declared, const Evaluation& evaluation,
                   const Measurement& measurement) {
  Regimes all(kAxes);
  for (const RowFacts& row : evaluation.truth.rows) mark_row(row, all);
  for (const OutputMeasure& output : measurement.outputs) {
    if (output.judged > output.nan + output.inf + output.zero) all.mark(kClasses, 0);
    if (output.zero > 0) all.mark(kClasses, 1);
    if (output.inf > 0) all.mark(kClasses, 2);
    if (output.nan > 0) all.mark(kClasses, 3);
  }
  if (op.regimes == nullptr) return all;
  Regimes own(op.regime_axes().size());
  op.regimes(problem, declared, own);
  all.append(own);
  return all;
}

std::vector<std::string> regime_names(const Op& op, const Regimes& regimes) {
  std::vector<std::string> names;
  const std::vector<RegimeAxis> axes = regime_axes(op);
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    for (std::size_t level = 0; level < axes[axis].levels.size(); ++level)
      if (regimes.reached(axis) >> level & 1)
        names.push_back(std::string(axes[axis].name) + ": " + std::string(axes[axis].levels[level]));
  return names;
}

}  // namespace assay
