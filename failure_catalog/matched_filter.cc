// Filters over many rows, and the sentence for the strongest one.
#include "failure_catalog/matched_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "failure_catalog/deviations.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kErrors = 6;
constexpr std::int64_t kEnough = 1000;                   // elements
constexpr std::size_t kRows = 1024;                      // at most
constexpr std::size_t kProducts = std::size_t{1} << 23;  // row by key by channel, of all rows together

std::size_t rows_for(const Scene& scene) {
  const AttentionView* view = scene.attention();
  if (view == nullptr) return kRows;
  const AttentionParams& p = view->problem.params();
  const auto cost = static_cast<std::size_t>(std::max<std::int64_t>(1, p.len_kv * (p.dim_qk + p.dim_v)));
  return std::clamp<std::size_t>(kProducts / cost, 16, kRows);
}

/// sum_j p_j^2 (sum_c weight_c v_jc)^2.
double p_projection(AttentionView& view, std::size_t row, const std::vector<double>& weight) {
  const std::vector<std::int32_t> keys = view.keys(row);
  std::vector<double> p = view.counterfactual.logits(view.row(row), keys);
  double top = view.problem.sink(view.row(row)), sum = 0;
  for (const double x : p) top = std::max(top, x);
  sum = exp64(view.problem.sink(view.row(row)) - top);
  for (double& x : p) sum += x = exp64(x - top);
  double total = 0;
  std::vector<double> v(weight.size());
  for (std::size_t j = 0; j < keys.size(); ++j) {
    view.problem.load_v(view.row(row).batch, view.problem.kv_head(view.row(row).head), keys[j], v);
    double along = 0;
    for (std::size_t c = 0; c < v.size(); ++c) along += weight[c] * v[c];
    along *= p[j] / sum * view.problem.value_factor(view.row(row), keys[j]);
    total += along * along;
  }
  return total;
}

}  // namespace

bool FilteredMode::significant() const {
  return result.elements >= kEnough && std::abs(result.value) > kErrors * result.standard_error + result.budget;
}

std::vector<FilteredMode> filter_modes(const Scene& scene) {
  std::vector<FilteredMode> all;
  const Trial trial(scene.evaluation, scene.outputs, scene.p_unit(), rows_for(scene));
  const auto projection = [&](std::size_t row, const std::vector<double>& weight) {
    return scene.attention() == nullptr ? 0.0 : p_projection(*scene.attention(), row, weight);
  };
  for (const Mode* mode : all_modes()) {
    if (mode->tangents == nullptr) continue;
    for (const Tangent& tangent : mode->tangents(scene))
      all.push_back({mode, tangent.parameter, trial.filter(tangent.slope, projection)});
  }
  return all;
}

std::vector<std::string> filter_warnings(const Scene& scene) {
  const bool replayed = std::any_of(scene.measurement.outputs.begin(), scene.measurement.outputs.end(),
                                    [](const OutputMeasure& m) { return m.role == "o" && !m.tiers.empty(); });
  if (!replayed) return {};
  const std::vector<FilteredMode> all = filter_modes(scene);
  const FilteredMode* best = nullptr;
  for (const FilteredMode& f : all)
    if (f.significant() && (best == nullptr || f.result.drop > best->result.drop)) best = &f;
  if (best == nullptr) return {};
  std::string text =
      fmt::format("{} is off by {}, over {} elements together; errors inside the tolerance could shift that by {:.1e}",
                  best->parameter, with_error(best->result.value, best->result.standard_error), best->result.elements,
                  best->result.budget);
  for (const FilteredMode& f : all)
    if (&f != best && f.significant() && f.result.drop > best->result.drop / 2)
      text += fmt::format("; {} by {} would explain {:.0f} % as much", f.parameter,
                          with_error(f.result.value, f.result.standard_error), 100 * f.result.drop / best->result.drop);
  return {text};
}

}  // namespace assay
