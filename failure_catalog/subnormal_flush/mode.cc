// M26: subnormal numbers, or factors too small for a narrower format, are taken for zero on the way in or out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "failure_catalog/second_run.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Another reading of the inputs, and of the answer: what is written below the output's smallest normal number is zero.
struct Reading {
  std::string what;
  Problem problem;
  bool flushes_output = false;
};

bool is_factor(const Tensor& t) { return t.layout.role.ends_with("_scale"); }

/// Everything below `least` in magnitude becomes zero; false if there is nothing.
bool flush(Problem& problem, std::string_view role, double least) {
  bool any = false;
  problem = with_values(std::move(problem), role, [&](double x) {
    const bool small = x != 0 && std::abs(x) < least;
    any = any || small;
    return small ? 0.0 : x;
  });
  return any;
}

bool has_subnormal_outputs(const Scene& scene) {
  const OutputTruth& o = scene.evaluation.truth.outputs.front();
  const double normal = info(o.layout.format).min_normal;
  return std::any_of(o.mid.begin(), o.mid.end(), [&](double x) { return x != 0 && std::abs(x) < normal; });
}

std::vector<Reading> readings(const Scene& scene) {
  std::vector<Reading> all;
  const bool small_outputs = has_subnormal_outputs(scene);
  Problem every = scene.problem;
  bool any = false;
  std::size_t flushed = 0;
  for (const Tensor& t : scene.problem.inputs) {
    const double normal = info(t.layout.format).min_normal;
    Problem one = scene.problem;
    if (holds_vectors(t.layout.role) && flush(one, t.layout.role, normal)) {
      flush(every, t.layout.role, normal), any = true, ++flushed;
      all.push_back({fmt::format("subnormal {} (below {:.4g})", t.layout.role, normal), one, false});
    }
    for (const double least : {0x1p-14, 0x1p-126})
      if (Problem factors = scene.problem; is_factor(t) && flush(factors, t.layout.role, least)) {
        all.push_back({fmt::format("{} below {:.4g}", t.layout.role, least), factors, false});
        break;
      }
  }
  if (any && flushed > 1) all.push_back({"subnormal inputs", every, false});
  if (!small_outputs) return all;
  const std::size_t inputs = all.size();
  for (std::size_t n = 0; n < inputs; ++n)
    all.push_back({all[n].what + " and subnormal outputs", all[n].problem, true});
  all.push_back({"subnormal outputs", scene.problem, true});
  return all;
}

/// Every judged element, right or wrong, is legal for the other reading at the levels that rejected some here; those of
/// wrong rows within a finite tolerance.
bool explains(const Scene& scene, const Reading& reading) {
  const std::vector<Tier>& tiers = scene.evaluation.bound.tiers;
  const Level level = tiers.empty() ? Level::kT0 : tiers.back().level;
  const Evaluation other = op_named(scene.c.op).evaluate(reading.problem, scene.declared, level);
  for (std::size_t k = 0; k < scene.outputs.size(); ++k) {
    const OutputTruth& truth = other.truth.outputs[k];
    const Format format = truth.layout.format;
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const std::uint64_t code = scene.outputs[k].view().code(truth.element[i]);
      const bool flushed = reading.flushes_output && k == 0 && std::abs(truth.mid[i]) < info(format).min_normal * 1.01;
      if (flushed && is_zero(format, code)) continue;
      const bool vacuous = !(other.bound.outputs[k].tau[i] < kInf) && (truth.classes[i] & kNumber) != 0 &&
                           row_fails(scene.measurement, static_cast<std::size_t>(truth.row[i]));
      if (vacuous || !accepted(other, k, i, code)) return false;
    }
  }
  return true;
}

std::optional<Diagnosis> detect(const Scene& scene) {
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  if (bad.empty()) return std::nullopt;
  for (const Reading& reading : readings(scene)) {
    if (!explains(scene, reading)) continue;
    std::int64_t zeros = 0, all = 0;
    double largest = 0;
    for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
      ++all, zeros += is_zero(scene.outputs[k].layout.format, code);
      largest = std::max(largest, std::abs(scene.evaluation.truth.outputs[k].mid[i]));
    });
    return Diagnosis{0.975,
                     fmt::format("all outputs agree with the answer for {} read as zero: {} of {} wrong elements are "
                                 "zero (truth up to {:.4g})",
                                 reading.what, zeros, all, largest)};
  }
  return std::nullopt;
}

const RegisterMode kRegister(
    {.name = "subnormal_flush", .id = "M26", .title = "Subnormals flushed to zero", .detect = detect});

}  // namespace
}  // namespace assay
