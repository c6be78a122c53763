// M14: a page or slot of another position, sequence or page is read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "failure_catalog/suppose.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

/// Entry of the flat list or of table row `batch` that page `index` of a sequence of `pages` pages is read from.
struct Entry {
  std::int64_t batch = 0, index = 0;
};
using Lookup = std::function<Entry(Entry own, std::int64_t pages)>;

/// The problem with its page list rewritten: entry (b, i) becomes what stands at `lookup` of it.
std::optional<Problem> relisted(const Scene& scene, const Lookup& lookup) {
  Problem changed = scene.problem;
  const AttentionProblem& own = scene.attention()->problem;
  const AttentionParams& p = own.params();
  const bool table = p.kv_store == KvStore::kVllm || p.kv_store == KvStore::kVllmX;
  const TensorView from = input_view(scene.problem, table ? "block_table" : "kv_indices");
  const TensorView starts = table ? TensorView{} : input_view(scene.problem, "kv_indptr");
  Tensor* to = find_tensor(changed, table ? "block_table" : "kv_indices");
  if (from.storage == nullptr || to == nullptr) return std::nullopt;
  const auto element = [&](const Entry& at) {
    if (table) return at.index < from.extent(1) ? from.element(at.batch, at.index) : -1;
    const std::int64_t n = static_cast<std::int64_t>(starts.value(starts.element(at.batch))) + at.index;
    return n < from.extent(0) ? from.element(n) : -1;
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t pages = (own.kv_len(b) + p.page - 1) / p.page;
    for (std::int64_t i = 0; i < pages; ++i) {
      const std::int64_t source = element(lookup({b, i}, pages));
      if (source < 0) return std::nullopt;
      store_code(to->bytes.data(), to->layout.format, element({b, i}), from.code(source));
    }
  }
  return changed;
}

/// The same with the numbers themselves given.
std::optional<Problem> renumbered(const Scene& scene, const std::function<std::int64_t(Entry)>& number) {
  Problem changed = scene.problem;
  const AttentionProblem& own = scene.attention()->problem;
  const AttentionParams& p = own.params();
  const bool table = p.kv_store == KvStore::kVllm || p.kv_store == KvStore::kVllmX;
  Tensor* to = find_tensor(changed, table ? "block_table" : "kv_indices");
  const TensorView starts = table ? TensorView{} : input_view(scene.problem, "kv_indptr");
  if (to == nullptr) return std::nullopt;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i * p.page < own.kv_len(b); ++i) {
      const std::int64_t at = table
                                  ? to->view().element(b, i)
                                  : to->view().element(static_cast<std::int64_t>(starts.value(starts.element(b))) + i);
      store_code(to->bytes.data(), to->layout.format, at, static_cast<std::uint32_t>(number({b, i})));
    }
  return changed;
}

enum class Side : std::uint8_t { kBoth, kKeys, kValues };

/// The right answer with keys, values or both of another problem.
Supposition from(const Scene& scene, Lazily::Make make, Side side, std::string text, double cost) {
  if (side == Side::kBoth) return suppose_problem(scene, std::move(make), std::move(text), cost);
  const auto other = std::make_shared<Lazily>(scene, std::move(make));
  AttentionView* own = scene.attention();
  return suppose(
      scene,
      [other, own, side](std::size_t row) -> std::optional<RowOutput> {
        AttentionView* view = other->view();
        if (view == nullptr) return std::nullopt;
        const AttentionRow& at = own->row(row);
        const std::vector<std::int32_t> keys = own->keys(row);
        std::vector<double> x = (side == Side::kKeys ? view : own)->counterfactual.logits(at, keys);
        double m = own->problem.sink(at);
        for (const double logit : x) m = std::max(m, logit);
        if (!(m > -__builtin_inf())) return std::nullopt;
        for (double& weight : x) weight = exp64(weight - m);
        return (side == Side::kKeys ? own : view)->counterfactual.mix(at, keys, x, x, m);
      },
      std::move(text), cost);
}

struct NamedLookup {
  std::string text;
  Lookup lookup;
  double cost = 0;
};

std::vector<NamedLookup> lookups(std::int64_t batch) {
  return {{"every sequence reads the page list of sequence 0",
           [](Entry e, std::int64_t) {
             return Entry{0, e.index};
           },
           0},
          {"every sequence reads the page list of the next one",
           [=](Entry e, std::int64_t) {
             return Entry{(e.batch + 1) % batch, e.index};
           },
           0.2},
          {"the last page of a sequence is read from the page before it",
           [](Entry e, std::int64_t n) {
             return Entry{e.batch, e.index > 0 && e.index == n - 1 ? e.index - 1 : e.index};
           },
           0},
          {"the page cursor advances every second page",
           [](Entry e, std::int64_t) {
             return Entry{e.batch, e.index - e.index % 2};
           },
           0},
          {"the page cursor advances every fourth page",
           [](Entry e, std::int64_t) {
             return Entry{e.batch, e.index - e.index % 4};
           },
           0.1},
          {"the page cursor never advances",
           [](Entry e, std::int64_t) {
             return Entry{e.batch, 0};
           },
           0.1},
          {"the page cursor is one page ahead",
           [](Entry e, std::int64_t) {
             return Entry{e.batch, e.index + 1};
           },
           0.2},
          {"the page cursor is one page behind",
           [](Entry e, std::int64_t) {
             return Entry{e.batch, std::max<std::int64_t>(0, e.index - 1)};
           },
           0.2},
          {"the last page of a sequence is the surplus entry behind its list",
           [](Entry e, std::int64_t n) {
             return Entry{e.batch, e.index == n - 1 ? n : e.index};
           },
           0.2}};
}

void by_page(const Scene& scene, std::vector<Supposition>& list) {
  constexpr std::array<std::string_view, 3> kOf{"", ", keys only", ", values only"};
  const AttentionProblem& own = scene.attention()->problem;
  const AttentionParams& p = own.params();
  std::vector<std::int64_t> before{0};  // pages of earlier sequences
  for (std::int64_t b = 0; b < p.batch; ++b) before.push_back(before.back() + (own.kv_len(b) + p.page - 1) / p.page);
  for (const Side side : {Side::kBoth, Side::kKeys, Side::kValues}) {
    const double cost = side == Side::kBoth ? 0 : 0.05;
    const std::string of(kOf[static_cast<std::size_t>(side)]);
    for (const NamedLookup& named : lookups(p.batch))
      list.push_back(from(
          scene, [&scene, lookup = named.lookup] { return relisted(scene, lookup); }, side, named.text + of,
          named.cost + cost));
    list.push_back(from(
        scene, [&scene] { return renumbered(scene, [](Entry e) { return e.index; }); }, side,
        "pages are taken in order from page 0, whatever the table says" + of, cost));
    list.push_back(from(
        scene,
        [&scene, before] {
          return renumbered(scene, [&](Entry e) { return before[static_cast<std::size_t>(e.batch)] + e.index; });
        },
        side, "pages are taken in order, each sequence behind the one before it, whatever the table says" + of,
        cost + 0.1));
    list.push_back(from(
        scene, [&scene] { return renumbered(scene, [](Entry) { return std::int64_t{0}; }); }, side,
        "page 0 is read for every page" + of, cost + 0.1));
  }
}

/// Values, or keys, of a neighbouring slot of the same page.
void by_slot(const Scene& scene, std::vector<Supposition>& list) {
  AttentionView* view = scene.attention();
  const std::int64_t page = view->problem.params().page;
  for (const std::int64_t by : {1, -1})
    for (const bool values : {true, false}) {
      const auto moved = [page, by](std::int32_t key, std::int64_t length) {
        const std::int64_t slot = key % page + by, other = key + by;
        return slot >= 0 && slot < page && other < length ? static_cast<std::int32_t>(other) : key;
      };
      const auto predict = [view, values, moved](std::size_t row) -> std::optional<RowOutput> {
        const AttentionRow& at = view->row(row);
        const std::int64_t length = view->problem.kv_len(at.batch);
        std::vector<std::int32_t> keys = view->keys(row);
        const AttentionParams& p = view->problem.params();
        const bool takes_mean = keys.empty() && p.sink == Sink::kNone && p.empty_output == EmptyOutput::kMean;
        if (takes_mean) keys = stored_keys(*view, at);
        std::vector<std::int32_t> others = keys;
        for (std::int32_t& key : others) key = moved(key, length);
        if (takes_mean) {
          RowOutput mean = answer(*view, at, {});
          if (values && length > 0) mean.o = mean_of_values(*view, at, others);
          return mean;
        }
        std::vector<double> x = view->counterfactual.logits(at, values ? keys : others);
        double m = view->problem.sink(at);
        for (const double logit : x) m = std::max(m, logit);
        if (!(m > -__builtin_inf())) return std::nullopt;
        for (double& weight : x) weight = exp64(weight - m);
        return view->counterfactual.mix(at, values ? others : keys, x, x, m);
      };
      list.push_back(suppose(
          scene, predict,
          fmt::format("{} come from the {} slot of the page", values ? "values" : "keys", by > 0 ? "next" : "previous"),
          0.1));
    }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention" || scene.attention()->problem.params().kv_store == KvStore::kContiguous) return {};
  std::vector<Supposition> list;
  by_page(scene, list);
  by_slot(scene, list);
  return list;
}

const RegisterMode kRegister(
    {.name = "page_slot_map", .id = "M14", .title = "Wrong page or slot", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
