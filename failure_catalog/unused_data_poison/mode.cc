// M02: bytes that nobody may use reach the output: 0 NaN in P V, NaN + (-inf) in a mask, a tail, page or part read and
// multiplied by zero.
#include <fmt/format.h>

#include <cmath>

#include "failure_catalog/second_run.h"

namespace assay {
namespace {

bool only_nonfinite(const Scene& scene) {
  bool all = true;
  for_each_rejected(scene, [&](std::size_t k, std::size_t, std::uint64_t code) {
    all =
        all && !is_finite(scene.outputs[k].layout.format, code) && code != canary_code(scene.outputs[k].layout.format);
  });
  return all;
}

bool same_bytes(const Problem& a, const Problem& b) {
  for (std::size_t t = 0; t < a.inputs.size(); ++t)
    if (a.inputs[t].bytes != b.inputs[t].bytes) return false;
  return true;
}

/// Zeros in unused storage cure every row, and so do the largest numbers: only what is not finite gets through.
std::optional<Diagnosis> detect_storage(const Scene& scene, const std::vector<std::size_t>& bad) {
  const Problem zeros = with_poison(scene, Poison::kZero);
  if (same_bytes(zeros, scene.problem)) return std::nullopt;
  const std::optional<Measurement> with_zeros = second_run(scene, zeros);
  if (!with_zeros || !all_right(*with_zeros, bad)) return std::nullopt;
  const std::optional<Measurement> with_numbers = second_run(scene, with_poison(scene, Poison::kTag));
  if (!with_numbers || !all_right(*with_numbers, bad)) return std::nullopt;  // such keys have weight
  Diagnosis found{0.985, fmt::format("{} rows are not finite and come out right with zeros, or numbers, in storage "
                                     "that no element uses (first: {}): unused bytes are multiplied by 0",
                                     bad.size(), row_name(scene, bad[0]))};
  // On this input the elements behind wrong strides need not matter, as long as they are finite.
  if (has_gaps(scene.problem)) found.rivals.emplace_back("stride_or_dtype");
  return found;
}

/// Inputs that are not finite, and on which no rejected element depends, as zeros.
std::optional<Diagnosis> detect_masked(const Scene& scene, const std::vector<std::size_t>& bad) {
  Problem finite = scene.problem;
  std::string roles;
  for (const Tensor& tensor : scene.problem.inputs) {
    if (!holds_vectors(tensor.layout.role)) continue;
    finite = with_values(std::move(finite), tensor.layout.role, [](double x) { return std::isfinite(x) ? x : 0.0; });
    for (const Tensor& changed : finite.inputs)
      if (changed.layout.role == tensor.layout.role && changed.bytes != tensor.bytes)
        roles += (roles.empty() ? "" : ", ") + tensor.layout.role;
  }
  if (roles.empty()) return std::nullopt;
  const std::optional<Measurement> cured = second_run(scene, finite);
  if (!cured || !all_right(*cured, bad)) return std::nullopt;
  return Diagnosis{0.98, fmt::format("{} rows are not finite although they do not use the {} that is not finite, and "
                                     "come out right with zeros there (first: {}): masked data is multiplied by 0 or "
                                     "added to",
                                     bad.size(), roles, row_name(scene, bad[0]))};
}

std::optional<Diagnosis> detect(const Scene& scene) {
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  if (bad.empty() || scene.experiment == nullptr || !only_nonfinite(scene)) return std::nullopt;
  if (const std::optional<Diagnosis> storage = detect_storage(scene, bad)) return storage;
  return detect_masked(scene, bad);
}

const RegisterMode kRegister(
    {.name = "unused_data_poison", .id = "M02", .title = "Unused data reaches the output", .detect = detect});

}  // namespace
}  // namespace assay
