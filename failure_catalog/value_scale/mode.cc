// M19: outputs multiplied by another factor than the case asks for; the LSE is right.
#include <fmt/format.h>

#include <algorithm>

#include "failure_catalog/deviations.h"

namespace assay {
namespace {

/// An element of a descale tensor for a head and a token.
double descale(const Scene& scene, std::string_view role, std::int64_t batch, std::int64_t head, std::int64_t token) {
  const AttentionParams& p = scene.attention()->problem.params();
  for (const Tensor& t : scene.problem.inputs) {
    if (t.layout.role != role) continue;
    const TensorView view = t.view();
    switch (p.descale) {
      case Descale::kNone: break;
      case Descale::kTensor: return view.value(view.element(0));
      case Descale::kHead: return view.value(view.element(batch, head));
      case Descale::kBlock: return view.value(view.element(batch, head, token / p.scale_block));
    }
  }
  return 1;
}

void attention(const Scene& scene, Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto with = [&](auto factor, const std::string& what) {
    Deviation d;
    d.value_factor = [&scene, factor](const AttentionRow& row, std::int64_t key) {
      return factor(scene, row, scene.attention()->problem.kv_head(row.head), key);
    };
    all.add(d, what);
  };
  if (p.descale != Descale::kNone) {
    with([](const Scene&, const AttentionRow&, std::int64_t, std::int64_t) { return 1.0; }, "v_scale is not applied");
    with(
        [](const Scene& s, const AttentionRow& row, std::int64_t, std::int64_t key) {
          const double v = s.attention()->problem.value_factor(row, key);
          return v * v;
        },
        "v_scale is applied twice");
    with([](const Scene& s, const AttentionRow& row, std::int64_t head,
            std::int64_t key) { return descale(s, "k_scale", row.batch, head, key); },
         "k_scale is applied in place of v_scale");
  }
}

constexpr Parameter kGain{.low = -1, .high = 4, .grid = 41}, kNear{.low = 0.98, .high = 1.02, .grid = 41};

std::string off(const std::string& value) {
  return "o is " + value + " times what it should be, for every row, and the LSE is right";
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(scene, all);
  for (const Parameter& range : {kNear, kGain}) {
    if (all.attention() != nullptr)
      all.add([](double t) { return Deviation{.gain = t}; }, range, "factor of o", off, 0.2);
    if (all.softmax() != nullptr)
      all.add([](double t) { return SoftmaxDeviation{.gain = t}; }, range, "factor of y", off, 0.2);
    if (all.merge() != nullptr)
      all.add([](double t) { return MergeDeviation{.gain = t}; }, range, "factor of o", off, 0.2);
  }
  return all.take();
}

/// o itself; of attention with what P's rounding leaves in it.
std::vector<Tangent> tangents(const Scene& scene) {
  const auto slope = [&scene](std::size_t row) -> std::optional<RowOutput> {
    if (AttentionView* view = scene.attention(); view != nullptr)
      return view->counterfactual.attend(view->row(row), view->keys(row));
    const OutputTruth& truth = scene.evaluation.truth.outputs.front();
    const std::size_t width = truth.mid.size() / std::max<std::size_t>(1, scene.evaluation.truth.rows.size());
    const auto first = truth.mid.begin() + static_cast<std::ptrdiff_t>(row * width);
    return RowOutput{std::vector<double>(first, first + static_cast<std::ptrdiff_t>(width))};
  };
  return {{.parameter = "the factor of " + scene.evaluation.truth.outputs.front().layout.role, .slope = slope}};
}

const RegisterMode kRegister({.name = "value_scale",
                              .id = "M19",
                              .title = "Outputs multiplied by another factor",
                              .hypotheses = hypotheses,
                              .tangents = tangents});

}  // namespace
}  // namespace assay
