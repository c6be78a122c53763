// M28: the right numbers in the wrong places: channels in another order, factors of another head or block.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "failure_catalog/layout_permutation/channels.h"
#include "failure_catalog/layout_permutation/factors.h"

namespace assay {
namespace {

/// The problem with the channels of q in another order. Read like that, K gives the scores of K with its channels in
/// the inverse order.
struct Reordered {
  Reordered(const Problem& raw, const ChannelOrder& order) : problem(reordered(raw, order)), view(problem) {}
  const Problem problem;
  AttentionView view;

  static Problem reordered(Problem raw, const ChannelOrder& order) {
    for (Tensor& q : raw.inputs) {
      if (q.layout.role != "q") continue;
      const Tensor before = q;
      const std::int64_t stride = q.layout.strides.back(), channels = q.layout.shape.back();
      const std::int64_t vectors = channels == 0 ? 0 : q.layout.count() / channels;
      for (std::int64_t n = 0; n < vectors; ++n) {
        std::int64_t first = q.layout.offset, left = n;
        for (std::size_t axis = q.layout.shape.size() - 1; axis-- > 0; left /= q.layout.shape[axis])
          first += left % q.layout.shape[axis] * q.layout.strides[axis];
        for (std::int64_t c = 0; c < channels; ++c)
          q.output().set_code(
              first + c * stride,
              before.view().code(first + static_cast<std::int64_t>(order.from[static_cast<std::size_t>(c)]) * stride));
      }
    }
    return raw;
  }
};

std::vector<Supposition> hypotheses(const Scene& scene) {
  AttentionView* view = scene.attention();
  if (view == nullptr) return {};
  std::vector<Supposition> all = wrong_factors(scene);
  const AttentionParams& p = view->problem.params();
  const auto bytes = static_cast<std::size_t>(bytes_per_element(p.input));
  for (const ChannelOrder& order : channel_orders(static_cast<std::size_t>(p.dim_qk), bytes)) {
    const auto other = std::make_shared<std::unique_ptr<Reordered>>();
    const auto predict = [&scene, other, order](std::size_t r, double) -> std::optional<RowOutput> {
      if (*other == nullptr) *other = std::make_unique<Reordered>(scene.problem, order);
      AttentionView& moved = (*other)->view;
      if (moved.keys(r).empty()) return std::nullopt;
      return moved.counterfactual.attend(moved.row(r), moved.keys(r));
    };
    all.push_back({.predict = predict, .evidence = [order](const FitAt&) {
                     return fmt::format("q meets K with its channels out of order: {}, in q or the inverse in K",
                                        order.what);
                   }});
  }
  for (const ChannelOrder& order : channel_orders(static_cast<std::size_t>(p.dim_v), bytes)) {
    const auto predict = [&scene, view, order](std::size_t r, double) -> std::optional<RowOutput> {
      const bool is_mean = view->problem.params().empty_output == EmptyOutput::kMean;
      if (view->keys(r).empty() && !is_mean) return std::nullopt;
      RowOutput right = view->counterfactual.attend(view->row(r), view->keys(r));
      const OutputTruth& truth = scene.evaluation.truth.outputs.front();  // has the mean of an empty row too
      std::copy_n(truth.mid.begin() + static_cast<std::ptrdiff_t>(r * right.o.size()), right.o.size(), right.o.begin());
      RowOutput out = right;
      for (std::size_t c = 0; c < order.from.size(); ++c) {
        out.o[c] = right.o[order.from[c]];
        if (!out.spread.empty()) out.spread[c] = right.spread[order.from[c]];
      }
      return out;
    };
    all.push_back({.predict = predict, .evidence = [order](const FitAt&) {
                     return fmt::format("the channels of V or O are out of order: {}", order.what);
                   }});
  }
  return all;
}

const RegisterMode kRegister({.name = "layout_permutation",
                              .id = "M28",
                              .title = "The right numbers in the wrong places",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
