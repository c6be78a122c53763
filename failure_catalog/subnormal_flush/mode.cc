// M26: subnormal values treated as zero on the way in or out.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "failure_catalog/mode.h"
#include "oracle/accept.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {
namespace {

constexpr std::size_t kRowsTried = 32;  // counterfactual rows; each costs one row in fp64

double flushed(Format format, double value) { return std::abs(value) < info(format).min_normal ? 0.0 : value; }

/// Signature: rejected elements agree with the answer for V whose subnormals are zero, then flushed again on output.
std::optional<Diagnosis> detect(const Scene& scene) {
  if (scene.c.op != "attention") return std::nullopt;
  const AttentionProblem problem(scene.problem);
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const OutputBound& bound = scene.evaluation.bound.outputs.front();
  const Format format = truth.layout.format, input = problem.params().input;
  const OutputMeasure& o = scene.measurement.outputs.front();
  const std::size_t channels = static_cast<std::size_t>(problem.params().dim_v);
  std::int64_t explained = 0, zero = 0;
  double largest = 0;
  std::size_t tried = 0;
  std::vector<std::int32_t> keys;
  Counterfactual counterfactual(problem);
  for (std::size_t r = 0; r < o.rows.size() && tried < kRowsTried; ++r) {
    if (o.rows[r].rejected == 0) continue;
    ++tried;
    problem.admissible_keys(problem.rows()[r], keys);
    if (keys.empty()) return std::nullopt;
    const RowOutput in = counterfactual.attend(problem.rows()[r], keys, {.see_v = [&](double v) { return flushed(input, v); }});
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = r * channels + c;
      const std::uint64_t code = load_code(scene.outputs.front().bytes.data(), format, truth.element[i]);
      const ClassSet classes = truth.classes[i] | bound.also[i];
      if (accepts(acceptance(format, classes, truth.mid[i], truth.radius[i], bound.tau[i]), code)) continue;
      const double flushed_out = flushed(format, in.o[c]);
      // tau bounds the kernel's rounding for V as given; its subnormal floors also cover V flushed.
      if (!accepts(acceptance(format, classes, flushed_out, truth.radius[i], bound.tau[i]), code)) return std::nullopt;
      ++explained;
      zero += decode(format, code) == 0;
      largest = std::max(largest, std::abs(truth.mid[i]));
    }
  }
  if (explained == 0) return std::nullopt;
  return Diagnosis{0.92, fmt::format("{} elements agree with the answer for V whose subnormals are zero ({} are exactly zero "
                                     "where the truth is up to {:.4g}; smallest normal {:.4g})", explained, zero, largest,
                                     info(format).min_normal)};
}

const RegisterMode kRegister({.name = "subnormal_flush", .id = "M26", .title = "Subnormals flushed to zero", .detect = detect});

}  // namespace
}  // namespace assay
