// Suppositions about keys, values and changed problems.
#include "failure_catalog/suppose.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "oracle/error.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

RowOutput empty_row(AttentionView& view, const AttentionRow& row, const Hypothesis& hypothesis) {
  const AttentionParams& p = view.problem.params();
  RowOutput out{std::vector<double>(static_cast<std::size_t>(p.dim_v), 0.0),
                p.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf,
                {}};
  if (p.empty_output == EmptyOutput::kNan) out.o.assign(out.o.size(), std::numeric_limits<double>::quiet_NaN());
  if (p.empty_output == EmptyOutput::kMean && view.problem.kv_len(row.batch) > 0)
    out.o = mean_of_values(view, row, stored_keys(view, row), hypothesis);
  return out;
}

std::string range_text(std::int32_t low, std::int32_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

}  // namespace

AttentionView* Lazily::view() {
  if (make_) {
    const Make make = std::exchange(make_, nullptr);
    try {
      if (std::optional<Problem> changed = make()) made_ = std::make_unique<Elsewhere>(std::move(*changed));
    } catch (const InputError&) {  // an index tensor that points outside: no such problem
    }
    if (made_ && made_->view.problem.rows().size() != rows_) made_.reset();
  }
  return made_ ? &made_->view : nullptr;
}

std::vector<std::int32_t> stored_keys(AttentionView& view, const AttentionRow& row) {
  std::vector<std::int32_t> keys(static_cast<std::size_t>(view.problem.kv_len(row.batch)));
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

std::vector<double> mean_of_values(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                   Hypothesis hypothesis) {
  hypothesis.sink = false;
  const std::vector<double> ones(keys.size(), 1.0);
  return view.counterfactual.mix(row, keys, ones, ones, 0, hypothesis).o;
}

RowOutput answer(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 const Hypothesis& hypothesis) {
  if (keys.empty() && view.problem.params().sink == Sink::kNone && hypothesis.ghosts == 0)
    return empty_row(view, row, hypothesis);
  return view.counterfactual.attend(row, keys, hypothesis);
}

Hypothesis biased_as(AttentionView& view, const AttentionRow& as) {
  Hypothesis h;
  h.alibi = false;
  h.see_logit = [&view, as](std::int32_t key, double x) { return x + view.problem.alibi(as, key); };
  return h;
}

RowOutput with_copies(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                      const std::function<double(std::int32_t)>& copies) {
  std::vector<double> x = view.counterfactual.logits(row, keys);
  double m = view.problem.sink(row);
  for (const double logit : x) m = std::max(m, logit);
  if (m == -kInf) return answer(view, row, keys);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = exp64(x[i] - m) * copies(keys[i]);
  return view.counterfactual.mix(row, keys, x, x, m);
}

Supposition suppose(const Scene& scene, Trial::Predict predict, std::string text, double cost) {
  return {.predict = [predict = std::move(predict)](std::size_t row, double) { return predict(row); },
          .evidence = [&scene, text = std::move(text)](const FitAt&) { return text + " in " + failing_rows(scene); },
          .cost = cost};
}

Supposition suppose_keys(const Scene& scene, EditKeys edit, std::string text, double cost) {
  AttentionView& view = *scene.attention();
  return suppose(
      scene,
      [&view, edit = std::move(edit)](std::size_t row) -> std::optional<RowOutput> {
        std::vector<std::int32_t> keys = view.keys(row);
        const std::vector<std::int32_t> before = keys;
        edit(row, keys);
        if (keys == before) return std::nullopt;
        return answer(view, view.row(row), keys);
      },
      std::move(text), cost);
}

Supposition suppose_key_rules(const Scene& scene, Lazily::Make make, std::string text, double cost) {
  const auto other = std::make_shared<Lazily>(scene, std::move(make));
  return suppose_keys(
      scene,
      [other](std::size_t row, std::vector<std::int32_t>& keys) {
        if (AttentionView* view = other->view(); view != nullptr) keys = view->keys(row);
      },
      std::move(text), cost);
}

Supposition suppose_problem(const Scene& scene, Lazily::Make make, std::string text, double cost,
                            const Hypothesis& hypothesis) {
  const auto other = std::make_shared<Lazily>(scene, std::move(make));
  return suppose(
      scene,
      [other, hypothesis](std::size_t row) -> std::optional<RowOutput> {
        AttentionView* view = other->view();
        if (view == nullptr) return std::nullopt;
        return answer(*view, view->row(row), view->keys(row), hypothesis);
      },
      std::move(text), cost);
}

Problem with_params(const Problem& problem, const std::vector<std::pair<std::string, std::string>>& changes) {
  Problem changed = problem;
  for (const auto& [key, value] : changes) changed.params.set(key, value);
  return changed;
}

Tensor* find_tensor(Problem& problem, std::string_view role) {
  for (Tensor& tensor : problem.inputs)
    if (tensor.layout.role == role) return &tensor;
  return nullptr;
}

std::string failing_rows(const Scene& scene) {
  const std::vector<RowFacts>& facts = scene.evaluation.truth.rows;
  std::size_t count = 0;
  RowFacts low, high;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    if (!scene.trial().fails(r)) continue;
    if (count++ == 0) low = high = facts[r];
    low.batch = std::min(low.batch, facts[r].batch), high.batch = std::max(high.batch, facts[r].batch);
    low.head = std::min(low.head, facts[r].head), high.head = std::max(high.head, facts[r].head);
    low.query = std::min(low.query, facts[r].query), high.query = std::max(high.query, facts[r].query);
  }
  return fmt::format("{} of {} rows (b {}, h {}, q {})", count, facts.size(), range_text(low.batch, high.batch),
                     range_text(low.head, high.head), range_text(low.query, high.query));
}

std::vector<std::int64_t> tile_sizes(const Scene& scene) {
  std::vector<std::int64_t> sizes;
  if (scene.declared.tile_n > 0) sizes.push_back(scene.declared.tile_n);
  for (const std::int64_t size : {std::int64_t{128}, std::int64_t{64}, std::int64_t{32}, std::int64_t{16},
                                  std::int64_t{256}, std::int64_t{8}, std::int64_t{4}})
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  return sizes;
}

}  // namespace assay
