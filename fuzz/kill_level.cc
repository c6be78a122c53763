// The weakest level that rejects an output.
#include "fuzz/kill_level.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/accept.h"

namespace assay {
namespace {

/// The weakest level at which an element of one output is rejected.
std::optional<KillLevel> level_of_output(const Evaluation& evaluation, std::size_t k, const Tensor& output) {
  const OutputTruth& truth = evaluation.truth.outputs[k];
  const OutputBound& bound = evaluation.bound.outputs[k];
  const Format format = truth.layout.format;
  std::optional<KillLevel> weakest;
  const auto found = [&](KillLevel level) {
    if (!weakest || level < *weakest) weakest = level;
  };
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    const std::uint64_t code = load_code(output.bytes.data(), format, truth.element[i]);
    const auto classes = static_cast<ClassSet>(truth.classes[i] | bound.also[i]);
    if (!accepts(acceptance(format, classes, truth.mid[i], truth.radius[i], bound.tau[i]), code)) {
      found((classes & kNumber) == 0 || !is_finite(format, code) ? KillLevel::kClass : KillLevel::kT0);
      continue;
    }
    if ((classes & kNumber) == 0 || classes == kAnything) continue;
    for (const Tier& tier : evaluation.bound.tiers) {
      const OutputTier& set = tier.outputs[k];
      if (!set.tau.empty() && std::isfinite(set.tau[i]) &&
          !accepts(acceptance(format, classes, set.mid[i], 0, set.tau[i]), code))
        found(tier.level == Level::kT1 ? KillLevel::kT1 : KillLevel::kT2);
    }
  }
  return weakest;
}

}  // namespace

std::optional<KillLevel> kill_level(const Evaluation& evaluation, const std::vector<Tensor>& outputs) {
  std::optional<KillLevel> weakest;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    std::optional<KillLevel> level = level_of_output(evaluation, k, outputs[k]);
    if (level && evaluation.truth.outputs[k].layout.role == "lse") level = KillLevel::kLse;
    if (level && (!weakest || *level < *weakest)) weakest = level;
  }
  return weakest;
}

std::optional<KillLevel> kill_level(const Evaluation& evaluation, const RunOutcome& run) {
  if (run.status == RunStatus::kCrashed || run.status == RunStatus::kHung || !run.broken.empty())
    return KillLevel::kHarness;
  if (run.status == RunStatus::kSkipped) return std::nullopt;
  return kill_level(evaluation, run.outputs);
}

double largest_error(const Truth& truth, const std::vector<Tensor>& outputs) {
  const OutputTruth& o = truth.outputs.front();
  double largest = 0;
  for (std::size_t i = 0; i < o.element.size(); ++i) {
    if (o.classes[i] != kNumber || !std::isfinite(o.radius[i])) continue;
    const double y = decode(o.layout.format, load_code(outputs.front().bytes.data(), o.layout.format, o.element[i]));
    const double error = std::isfinite(y) ? std::abs(y - o.mid[i]) : std::numeric_limits<double>::infinity();
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace assay
