// M03: an intermediate leaves its format although inputs and exact result fit: raw scores, folded queries, sums before
// their normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "failure_catalog/deviations.h"
#include "failure_catalog/intermediate_overflow/shadows.h"
#include "failure_catalog/second_run.h"
#include "failure_catalog/threshold.h"

namespace assay {
namespace {

constexpr std::array<Format, 2> kFormats{Format::kFp16, Format::kE5m2};

/// Every rejected element is infinite, NaN or zero.
bool looks_overflown(const Scene& scene) {
  bool all = true, any = false;
  for_each_rejected(scene, [&](std::size_t k, std::size_t, std::uint64_t code) {
    const Format format = scene.outputs[k].layout.format;
    all = all && code != canary_code(format) && (!is_finite(format, code) || is_zero(format, code));
    any = true;
  });
  return any && all;
}

/// Whether what the shadow stands for came out wrong: its element of o, or anything of its row.
bool is_wrong(const Scene& scene, const Shadow& shadow) {
  if (shadow.element < 0) return row_fails(scene.measurement, shadow.row);
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const std::size_t per_row = truth.element.size() / scene.evaluation.truth.rows.size();
  const std::size_t i = shadow.row * per_row + static_cast<std::size_t>(shadow.element);
  const std::uint64_t code = scene.outputs.front().view().code(truth.element[i]);
  return !accepted(scene.evaluation, 0, i, code);
}

/// Scales an input, and the softmax scale back where that undoes it; or the softmax scale alone.
Problem moved(const Scene& scene, const ShadowKind& kind, double factor) {
  Problem problem = with_values(scene.problem, kind.cured_by, [&](double x) { return x * factor; });
  const bool by_scale = kind.cured_by == kSoftmaxScale;
  if (by_scale || kind.scale_back) {
    const double scale = static_cast<double>(attention_params(problem.params).scale);
    problem.params.set("scale", fmt::format("{}", static_cast<float>(by_scale ? scale * factor : scale / factor)));
  }
  return problem;
}

/// One row just above the limit, then just below it, twice: it must be wrong, then right.
std::optional<bool> is_sharp(const Scene& scene, const ShadowKind& kind, const Shadow& first, double limit) {
  constexpr double kBitsOfShift = 8;  // rounding of the shift by the maximum: beyond it rows fail by chance (M04)
  const double logit = std::abs(scene.evaluation.truth.rows[first.row].max_logit) * 0x1.71547652b82fep-24;
  const auto fails_at = [&](double share, double size) -> std::optional<bool> {
    const double factor = share * limit / size;
    if (logit * (kind.cured_by == kSoftmaxScale ? factor : 1) > kBitsOfShift) return false;
    const std::optional<Measurement> run = second_run(scene, moved(scene, kind, factor));
    if (!run) return std::nullopt;
    return row_fails(*run, first.row);
  };
  for (const double distance : {0.05, 0.2}) {
    const std::optional<bool> above = fails_at(1 + distance, first.low);
    if (!above || !*above) return above;
    const std::optional<bool> below = fails_at(1 - distance, first.high);
    if (!below) return std::nullopt;
    if (*below) return false;
  }
  return true;
}

std::optional<Diagnosis> detect(const Scene& scene) {
  if (!looks_overflown(scene)) return std::nullopt;
  for (const ShadowKind& kind : shadows(scene))
    for (const Format format : kFormats) {
      Threshold law{.limit = info(format).max_finite};
      const Shadow* first = nullptr;
      for (const Shadow& shadow : kind.values) {
        const bool wrong = is_wrong(scene, shadow);
        law.add(wrong, shadow.low, shadow.high);
        if (wrong && (first == nullptr || shadow.low > first->low)) first = &shadow;
      }
      if (!law.holds() || !(first->low > 0)) continue;
      const std::optional<bool> sharp = is_sharp(scene, kind, *first, law.limit);
      if (sharp == false) continue;
      std::string evidence = fmt::format(
          "{} {} of {} come out zero, infinite or NaN: exactly those whose {} passes {}'s largest number {:.0f} (at "
          "least "
          "{:.6g} there",
          law.bad, first->element < 0 ? "rows" : "elements", law.bad + law.good, kind.what, info(format).name,
          law.limit, law.least_bad);
      if (law.good > 0) evidence += fmt::format(", at most {:.6g} elsewhere", law.most_good);
      evidence += ")";
      if (sharp) evidence += fmt::format("; {} is wrong at 1.05 of it and right at 0.95", row_name(scene, first->row));
      return Diagnosis{sharp ? 0.98 : 0.93, evidence};
    }
  return std::nullopt;
}

/// Raw scores or O held in fp16 where some leave it. What a row with rounded ones shows is the same: a sibling without
/// overflow tells that from M24.
std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.attention() == nullptr) return {};
  Deviations all(scene);
  const double largest = info(Format::kFp16).max_finite;
  for (const ShadowKind& kind : shadows(scene)) {
    const bool raw = kind.what == kRawScore;
    if ((raw || kind.what == kAccumulator) &&
        std::any_of(kind.values.begin(), kind.values.end(), [&](const Shadow& s) { return s.high > largest; }))
      all.add(raw ? Deviation{.score_store = Format::kFp16} : Deviation{.o_tile = Format::kFp16},
              fmt::format("{} passes fp16's largest number {:.0f} where it is held in fp16", kind.what, largest));
  }
  return all.take();
}

const RegisterMode kRegister({.name = "intermediate_overflow",
                              .id = "M03",
                              .title = "An intermediate leaves its format",
                              .detect = detect,
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
