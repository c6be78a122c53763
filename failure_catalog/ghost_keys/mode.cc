// M11: keys that do not exist take part: padding lanes of a tile, a spurious initial mass, a last key counted again.
#include <fmt/format.h>

#include <algorithm>

#include "failure_catalog/suppose.h"

namespace assay {
namespace {

constexpr std::int64_t kQueryTile = 64;

/// The row, or some query of its tile of 64, sees a key of the last, partly filled key tile, so that a kernel walks it.
/// A kernel that walks it before any other forgets ghosts of rows that see none of its keys.
bool reaches_the_tail(const AttentionProblem& problem, const AttentionRow& row, std::int64_t tile, bool by_row) {
  const std::int64_t tail = problem.kv_len(row.batch) / tile * tile, first = row.query / kQueryTile * kQueryTile;
  const std::int64_t last = std::min(first + kQueryTile, problem.q_len(row.batch)) - 1;
  for (std::int64_t i = by_row ? row.query : first; i <= (by_row ? row.query : last); ++i) {
    const auto [begin, end] = problem.key_span({row.batch, row.head, i});
    if (begin < end && end > tail) return true;
  }
  return false;
}

/// Ghosts that the running maximum does not see overflow the sum where all logits lie far below theirs.
RowOutput with_ghosts(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys, double n) {
  constexpr double kOverflows = 88.8;  // log of the largest fp32
  RowOutput out = answer(view, row, keys, {.ghosts = n});
  double largest = view.problem.sink(row);
  for (const double x : view.counterfactual.logits(row, keys)) largest = std::max(largest, x);
  if (largest < -kOverflows) {
    out.lse = __builtin_inf();
    out.lse_or_nan = true;  // a merge of such a part
    out.or_nan.assign(out.o.size(), true);
  }
  return out;
}

/// How many ghosts a row has, from its length.
using Count = std::function<double(std::int64_t length)>;

void ghosts(const Scene& scene, std::int64_t tile, const Count& count, const std::string& text, double cost,
            std::vector<Supposition>& list) {
  AttentionView& view = *scene.attention();
  for (const bool by_row : {false, true})
    list.push_back(suppose(
        scene,
        [&view, tile, count, by_row](std::size_t row) -> std::optional<RowOutput> {
          const AttentionRow& at = view.row(row);
          const double n = count(view.problem.kv_len(at.batch));
          const std::vector<std::int32_t>& keys = view.keys(row);
          if (n == 0 || keys.empty() || !reaches_the_tail(view.problem, at, tile, by_row)) return std::nullopt;
          return with_ghosts(view, at, keys, n);
        },
        text, cost + (by_row ? 0.05 : 0)));
}

/// The last key of the sequence counted `1 + count` times.
Supposition repeated(const Scene& scene, Count count, std::string text, double cost) {
  AttentionView& view = *scene.attention();
  return suppose(
      scene,
      [&view, count = std::move(count)](std::size_t row) -> std::optional<RowOutput> {
        const AttentionRow& at = view.row(row);
        const std::int64_t length = view.problem.kv_len(at.batch);
        const double n = count(length);
        const std::vector<std::int32_t> keys = view.keys(row);
        if (n == 0 || keys.empty() || keys.back() != length - 1) return std::nullopt;
        return with_copies(view, at, keys, [&](std::int32_t key) { return key == length - 1 ? 1 + n : 1.0; });
      },
      std::move(text), cost);
}

double padding(std::int64_t length, std::int64_t tile) { return static_cast<double>((tile - length % tile) % tile); }

/// The same number in every row, fitted.
Supposition constant(const Scene& scene, Parameter range) {
  AttentionView& view = *scene.attention();
  Supposition s;
  s.predict = [&view](std::size_t row, double n) -> std::optional<RowOutput> {
    const std::vector<std::int32_t>& keys = view.keys(row);
    if (keys.empty()) return std::nullopt;
    return answer(view, view.row(row), keys, {.ghosts = n});
  };
  s.evidence = [&scene](const FitAt& fit) {
    const double error = fit.standard_error + fit.budget;
    return fmt::format("{} keys of logit 0 and value 0 take part in {}",
                       error < fit.value ? fmt::format("{:.2f}({:.0e})", fit.value, error) : "any number of",
                       failing_rows(scene));
  };
  s.parameter = range;
  s.parameter_name = "keys of logit 0 and value 0";
  s.cost = 0.4;
  return s;
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention") return {};
  const AttentionParams& p = scene.attention()->problem.params();
  std::vector<Supposition> list;
  list.push_back(constant(scene, {.low = 0.125, .high = 8.125, .grid = 17}));
  list.push_back(constant(scene, {.low = 8, .high = 256, .grid = 32}));
  for (const std::int64_t tile : tile_sizes(scene)) {
    ghosts(
        scene, tile, [tile](std::int64_t length) { return length % tile == 0 ? 0.0 : 1.0; },
        fmt::format("1 key of logit 0 and value 0 takes part where the length is no multiple of {}", tile), 0.2, list);
    ghosts(
        scene, tile, [tile](std::int64_t length) { return padding(length, tile); },
        fmt::format("the columns that pad the last tile of {} keys take part, with logit 0 and value 0", tile), 0.2,
        list);
    list.push_back(repeated(
        scene, [tile](std::int64_t length) { return padding(length, tile); },
        fmt::format("the last key is repeated up to a multiple of {} keys", tile), 0.3));
  }
  list.push_back(repeated(
      scene, [](std::int64_t) { return 1.0; }, "the last key counts twice", 0.3));
  if (p.kv_store != KvStore::kContiguous)
    for (const std::int64_t tile : tile_sizes(scene))
      ghosts(
          scene, tile,
          [tile, page = p.page](std::int64_t length) { return std::min(padding(length, tile), padding(length, page)); },
          fmt::format("the unused slots of the last page of {} take part, with logit 0 and value 0", p.page), 0.1,
          list);
  return list;
}

const RegisterMode kRegister(
    {.name = "ghost_keys", .id = "M11", .title = "Keys that do not exist take part", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
