// M18: logits multiplied by another factor than the case asks for.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "failure_catalog/deviations.h"
#include "failure_catalog/suppose.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr Parameter kSmall{.low = 0.99, .high = 1.01, .grid = 41}, kLarge{.low = -3, .high = 3, .grid = 49};

std::string off(const std::string& value) { return "the softmax scale is " + value + " of the declared one"; }

/// Factors that a scale is off by when a formula was taken for another.
std::vector<std::pair<double, std::string>> formulas(double scale, std::int64_t dim) {
  std::vector<std::pair<double, std::string>> all;
  const auto d = static_cast<double>(dim);
  all.emplace_back(1 / std::sqrt(d) / scale, fmt::format("1 / sqrt({}), whatever the case asks for", dim));
  std::int64_t before = dim;
  for (const std::int64_t multiple : std::array<std::int64_t, 5>{8, 16, 32, 64, 128}) {
    const std::int64_t padded = (dim + multiple - 1) / multiple * multiple;
    if (padded == before) continue;
    before = padded;
    all.emplace_back(1 / std::sqrt(static_cast<double>(padded)) / scale,
                     fmt::format("1 / sqrt({}) of the head dimension padded from {}", padded, dim));
    all.emplace_back(std::sqrt(d / static_cast<double>(padded)),
                     fmt::format("sqrt({} / {}) of the declared one: that of the padded head dimension", dim, padded));
  }
  all.emplace_back(1 / kLn2, "log2(e) of the declared one");
  all.emplace_back(kLn2, "ln 2 of the declared one");
  return all;
}

void attention(Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto changed = [&](auto change, const std::string& what) {
    Deviation d;
    d.logit = [&p, change](const AttentionRow&, ReplayKey key) {
      change(key);
      return defined_logit(p, key);
    };
    all.add(d, what);
  };
  if (p.descale != Descale::kNone) {
    changed([](ReplayKey& key) { key.k_scale = 1; }, "k_scale is not applied");
    changed([](ReplayKey& key) { key.k_scale *= key.k_scale; }, "k_scale is applied twice");
    changed([scale = static_cast<double>(p.scale)](ReplayKey& key) { key.scale_q = scale; }, "q_scale is not applied");
    changed([scale = static_cast<double>(p.scale)](ReplayKey& key) { key.scale_q *= key.scale_q / scale; },
            "q_scale is applied twice");
    changed([scale = static_cast<double>(p.scale)](ReplayKey& key) { key.scale_q = scale, key.k_scale = 1; },
            "neither q_scale nor k_scale is applied");
  }
  if (p.scale != 0)
    for (const auto& [factor, what] : formulas(static_cast<double>(p.scale), p.dim_qk))
      if (std::abs(factor - 1) > 1e-6) all.add(Deviation{.scale = factor}, "the softmax scale is " + what, 0.1);
  if (const int tile = all.structure().tile_n; tile > 0 && p.scale != 0) {
    // The scale once more where a tile is not full: the last keys of a sequence.
    Deviation d;
    const auto scale = static_cast<double>(p.scale);
    d.logit = [&p, &problem = all.problem(), tile, scale](const AttentionRow& row, ReplayKey key) {
      const double again = p.descale == Descale::kNone ? scale : key.scale_q * key.k_scale;
      if (key.key >= problem.kv_len(row.batch) / tile * tile) key.score *= again;
      return defined_logit(p, key);
    };
    all.add(d, fmt::format("the scale is applied twice in a tile of fewer than {} keys", tile));
  }
  all.add([](double t) { return Deviation{.scale = t}; }, kSmall, "softmax scale over the declared one", off, 0.2);
  all.add([](double t) { return Deviation{.scale = exp2_64(t)}; }, kLarge,
          "log2 of the softmax scale over the declared one",
          [](const std::string& value) { return "the softmax scale is 2^" + value + " of the declared one"; }, 0.3);
}

void softmax(Deviations& all) {
  all.add([](double t) { return SoftmaxDeviation{.scale = t}; }, kSmall, "softmax scale over the declared one", off,
          0.1);
  all.add([](double t) { return SoftmaxDeviation{.exponent = t}; }, kSmall, "log2(e) over the right one",
          [](const std::string& value) {
            return "exponents are " + value +
                   " of what they should be, the maximum in the LSE is right: log2(e) is off";
          },
          0);
  all.add(SoftmaxDeviation{.exponent = 1 / kLn2}, "log2(e) is multiplied in twice");
  all.add(SoftmaxDeviation{.exponent = kLn2}, "log2(e) is left out: powers of two are taken for powers of e");
}

/// A declared scale of 0 is no multiple of another: the right answer of a problem that asks for it.
void in_place_of_zero(const Scene& scene, std::vector<Supposition>& list) {
  const std::int64_t dim = scene.attention()->problem.params().dim_qk;
  std::int64_t before = 0;
  for (const std::int64_t multiple : {1, 8, 16, 32, 64, 128}) {
    const std::int64_t padded = (dim + multiple - 1) / multiple * multiple;
    if (std::exchange(before, padded) == padded) continue;
    list.push_back(suppose_problem(
        scene,
        [&raw = scene.problem, padded] {
          return with_params(
              raw, {{"scale", fmt::format("{}", static_cast<float>(1 / std::sqrt(static_cast<double>(padded))))}});
        },
        fmt::format("the softmax scale is 1 / sqrt({}) where 0 is asked for", padded), 0.1));
  }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(all);
  if (all.softmax() != nullptr) softmax(all);
  std::vector<Supposition> list = all.take();
  if (all.attention() != nullptr && all.attention()->scale == 0) in_place_of_zero(scene, list);
  return list;
}

/// dO/dt for the softmax scale times 1 + t, by differences of the exact answer: sum p_j s_j v_j - (sum p_j s_j) o where
/// nothing stands behind the scale.
std::vector<Tangent> tangents(const Scene& scene) {
  if (scene.attention() == nullptr) return {};
  const auto slope = [&scene](std::size_t index) -> std::optional<RowOutput> {
    AttentionView& view = *scene.attention();
    const AttentionRow& row = view.row(index);
    const std::vector<std::int32_t> keys = view.keys(index);
    if (keys.empty()) return std::nullopt;
    constexpr double kStep = 0x1p-12;
    RowOutput up = view.counterfactual.attend(row, keys, {.gain = 1 + kStep});
    const RowOutput down = view.counterfactual.attend(row, keys, {.gain = 1 - kStep});
    for (std::size_t c = 0; c < up.o.size(); ++c) up.o[c] = (up.o[c] - down.o[c]) / (2 * kStep);
    up.lse = (up.lse - down.lse) / (2 * kStep);
    return up;
  };
  return {{.parameter = "the softmax scale", .slope = slope}};
}

const RegisterMode kRegister({.name = "logit_scale",
                              .id = "M18",
                              .title = "Logits multiplied by another factor",
                              .hypotheses = hypotheses,
                              .tangents = tangents});

}  // namespace
}  // namespace assay
