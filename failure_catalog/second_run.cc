// Second runs, judged at T0.
#include "failure_catalog/second_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "cases/materialize.h"

namespace assay {

bool row_fails(const Measurement& measurement, std::size_t row) {
  return std::any_of(measurement.outputs.begin(), measurement.outputs.end(),
                     [&](const OutputMeasure& output) { return output.rows[row].rejected > 0; });
}

std::vector<std::size_t> failing_rows(const Measurement& measurement) {
  std::vector<std::size_t> rows;
  for (std::size_t r = 0; r < static_cast<std::size_t>(measurement.rows); ++r)
    if (row_fails(measurement, r)) rows.push_back(r);
  return rows;
}

bool has_gaps(const Problem& problem) {
  return std::any_of(problem.inputs.begin(), problem.inputs.end(),
                     [](const Tensor& t) { return t.layout.storage > t.layout.count(); });
}

bool has_weights(const RowFacts& facts) {
  return facts.keys > 0 && facts.max_logit != -std::numeric_limits<double>::infinity();
}

std::optional<Measurement> second_run(const Scene& scene, const Problem& problem) {
  if (scene.experiment == nullptr) return std::nullopt;
  const std::optional<std::vector<Tensor>> outputs = scene.experiment->run(problem);
  if (!outputs) return std::nullopt;
  return measure(op_named(scene.c.op).evaluate(problem, scene.experiment->declared(), Level::kT0), *outputs);
}

bool all_right(const Measurement& measurement, const std::vector<std::size_t>& rows) {
  return std::none_of(rows.begin(), rows.end(), [&](std::size_t row) { return row_fails(measurement, row); });
}

Problem with_values(Problem problem, std::string_view role, const std::function<double(double)>& change) {
  for (Tensor& tensor : problem.inputs) {
    if (tensor.layout.role != role) continue;
    const Format format = tensor.layout.format;
    for (std::int64_t i = 0; i < tensor.layout.storage; ++i) {
      const double before = tensor.view().value(i), after = change(before);
      if (after != before) tensor.output().set_code(i, encode(format, after));
    }
  }
  return problem;
}

Problem with_logits_times(Problem problem, double factor) {
  constexpr std::string_view kLinear[] = {"q", "x", "lse_parts", "mask", "slopes", "sink"};
  for (Tensor& tensor : problem.inputs) {
    const Format format = tensor.layout.format;
    if (info(format).specials == Specials::kInteger) continue;  // a mask of yes and no
    if (std::find(std::begin(kLinear), std::end(kLinear), tensor.layout.role) == std::end(kLinear)) continue;
    for (std::int64_t i = 0; i < tensor.layout.storage; ++i)
      if (const double x = tensor.view().value(i); std::isfinite(x))
        tensor.output().set_code(i, encode(format, x * factor, Rounding::kNearestEven, Overflow::kSaturate));
  }
  return problem;
}

Problem with_poison(const Scene& scene, Poison poison) {
  Case other = scene.c;
  other.poison = poison;
  return materialize(other);
}

bool holds_vectors(std::string_view role) {
  constexpr std::string_view kRoles[] = {"q", "k", "v", "k_prefix", "v_prefix", "x", "o_parts"};
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

std::string row_name(const Scene& scene, std::size_t row) {
  const RowFacts& facts = scene.evaluation.truth.rows[row];
  if (scene.c.op != "attention") return fmt::format("row {}", facts.query);
  return fmt::format("b {} h {} q {}", facts.batch, facts.head, facts.query);
}

}  // namespace assay
