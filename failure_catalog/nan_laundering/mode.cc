// M06: NaN in data that a row uses comes out as a number: a maximum that drops it, a decoder without its code, a clamp.
#include <fmt/format.h>

#include <cmath>

#include "failure_catalog/second_run.h"

namespace assay {
namespace {

/// NaN must come out and a number does, wherever something is rejected; with numbers in place of the inputs that are
/// not finite, those rows are right.
std::optional<Diagnosis> detect(const Scene& scene) {
  std::int64_t laundered = 0;
  bool others = false;
  std::string example;
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    const ClassSet legal = truth.classes[i] | scene.evaluation.bound.outputs[k].also[i];
    const Format format = truth.layout.format;
    const bool largest = std::abs(decode(format, code)) == info(format).max_finite;
    const bool declared = !has_weights(scene.evaluation.truth.rows[static_cast<std::size_t>(truth.row[i])]);
    const bool is_laundered = (legal & kNumber) == 0 && (legal & (kNan | kPlusInf | kMinusInf)) != 0 &&
                              is_finite(format, code) && (largest || !declared);  // else a convention (M09)
    others = others || !is_laundered;
    if (!is_laundered || laundered++ > 0) return;
    example = fmt::format("{} of {} is {:.6g}", truth.layout.role,
                          row_name(scene, static_cast<std::size_t>(truth.row[i])), decode(truth.layout.format, code));
  });
  if (laundered == 0 || others) return std::nullopt;
  Problem numbers = scene.problem;
  for (const Tensor& tensor : scene.problem.inputs) {
    const bool vectors = holds_vectors(tensor.layout.role);  // an LSE of -inf says that there is nothing
    if (vectors || tensor.layout.role == "lse_parts")
      numbers = with_values(std::move(numbers), tensor.layout.role, [&](double x) {
        return std::isnan(x) ? 1.0 : std::isinf(x) && (vectors || x > 0) ? 2.0 : x;
      });
  }
  const std::optional<Measurement> run = second_run(scene, numbers);
  std::vector<std::size_t> with_weights;  // in the others NaN is what the case declares, and stays
  for (const std::size_t row : failing_rows(scene.measurement))
    if (has_weights(scene.evaluation.truth.rows[row])) with_weights.push_back(row);
  if (run && !all_right(*run, with_weights)) return std::nullopt;
  Diagnosis found{run ? 0.985 : 0.9,
                  fmt::format("{} elements are numbers where NaN or an infinity must come out ({}){}", laundered,
                              example, run ? "; with numbers in place of the NaN these rows are right" : "")};
  // A part that is not merged at all loses its NaN too, and need not weigh anything as a number.
  if (scene.c.op == "merge") found.rivals.emplace_back("merge_weight");
  return found;
}

const RegisterMode kRegister(
    {.name = "nan_laundering", .id = "M06", .title = "NaN becomes a number", .detect = detect});

}  // namespace
}  // namespace assay
