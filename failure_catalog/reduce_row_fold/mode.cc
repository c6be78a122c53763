// M17: partial results of splits are stored or combined for the wrong row, or some never are.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cases/materialize.h"
#include "failure_catalog/merge_suppose.h"
#include "failure_catalog/suppose.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kQueryTile = 64;

using RowMap = std::function<AttentionRow(const AttentionRow&)>;

/// Keys per split of a sequence: whole tiles, split evenly.
std::int64_t split_size(const Scene& scene, std::int64_t length) {
  const std::int64_t tile = std::max(1, scene.declared.tile_n), splits = scene.declared.splits;
  return ((length + tile - 1) / tile + splits - 1) / splits * tile;
}

/// O and LSE (natural) of the row's keys in one split, without the sink.
struct Partial {
  std::vector<double> o;
  double lse = -kInf;
};

Partial partial(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys, std::int64_t first,
                std::int64_t end) {
  std::vector<std::int32_t> in;
  for (const std::int32_t key : keys)
    if (key >= first && key < end) in.push_back(key);
  if (in.empty()) return {std::vector<double>(static_cast<std::size_t>(view.problem.params().dim_v), 0.0), -kInf};
  const RowOutput out = view.counterfactual.attend(row, in, {.sink = false});
  return {out.o, view.problem.params().lse == LseBase::kTwo ? out.lse * 0x1.62e42fefa39efp-1 : out.lse};
}

/// The row merged from split results whose O and LSE may be those of other rows.
std::optional<RowOutput> merged(const Scene& scene, const AttentionRow& row, const RowMap& o_of_last,
                                const RowMap& lse_of) {
  AttentionView& view = *scene.attention();
  const AttentionParams& p = view.problem.params();
  const std::int64_t length = view.problem.kv_len(row.batch), size = split_size(scene, length);
  std::vector<Partial> parts;
  const auto keys_of = [&](const AttentionRow& of) {
    std::vector<std::int32_t> keys;
    view.problem.admissible_keys(of, keys);
    return keys;
  };
  const AttentionRow weights_row = lse_of(row), last_row = o_of_last(row);
  const std::vector<std::int32_t> own = keys_of(row), weighing = keys_of(weights_row), last = keys_of(last_row);
  for (std::int64_t split = 0; split < scene.declared.splits; ++split) {
    const std::int64_t first = split * size;
    Partial part = partial(view, row, own, first, first + size);
    if (split + 1 == scene.declared.splits) part.o = partial(view, last_row, last, first, first + size).o;
    part.lse = partial(view, weights_row, weighing, first, first + size).lse;
    parts.push_back(std::move(part));
  }
  const double sink = view.problem.sink(row);
  double m = sink;
  for (const Partial& part : parts) m = std::max(m, part.lse);
  if (m == -kInf) {  // a row without keys to the merge, whatever its own
    if (own.empty()) return std::nullopt;
    RowOutput empty = answer(view, row, {});
    empty.or_nan.assign(empty.o.size(), true);
    empty.lse_or_nan = true;
    return empty;
  }
  RowOutput out{std::vector<double>(static_cast<std::size_t>(p.dim_v), 0.0), 0, {}};
  double sum = 0;
  for (const Partial& part : parts) {
    const double weight = exp64(part.lse - m);
    sum += weight;
    for (std::size_t c = 0; c < out.o.size(); ++c) out.o[c] += weight * part.o[c];
  }
  const double all = sum + (sink == -kInf ? 0 : exp64(sink - m));
  for (double& o : out.o) o /= all;
  out.lse = m + log64(p.sink == Sink::kInLse ? all : sum);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

/// The whole result of another row.
void folded(const Scene& scene, std::vector<Supposition>& list) {
  AttentionView* view = scene.attention();
  const AttentionProblem& problem = view->problem;
  const auto add = [&](RowMap map, std::string text, double cost) {
    list.push_back(suppose(
        scene,
        [view, map = std::move(map)](std::size_t row) -> std::optional<RowOutput> {
          const AttentionRow& at = view->row(row);
          const AttentionRow from = map(at);
          if (from.batch == at.batch && from.head == at.head && from.query == at.query) return std::nullopt;
          if (from.query < 0 || from.query >= view->problem.q_len(from.batch)) return std::nullopt;
          std::vector<std::int32_t> keys;
          view->problem.admissible_keys(from, keys);
          return answer(*view, from, keys);
        },
        std::move(text), cost));
  };
  if (problem.params().batch > 1) {
    add(
        [](const AttentionRow& at) {
          return AttentionRow{0, at.head, at.query};
        },
        "every sequence has the result of sequence 0", 0);
    add(
        [&problem](const AttentionRow& at) {
          return AttentionRow{problem.q_len(at.batch) > 1 ? 0 : at.batch, at.head, at.query};
        },
        "every sequence of two or more queries has the result of sequence 0", 0.1);
  }
  add(
      [](const AttentionRow& at) {
        return AttentionRow{at.batch, at.head, 0};
      },
      "every query has the result of query 0", 0.1);
  add(
      [](const AttentionRow& at) {
        return AttentionRow{at.batch, at.head, at.query / kQueryTile * kQueryTile};
      },
      "every query has the result of the first of its tile", 0.2);
  add(
      [](const AttentionRow& at) {
        return AttentionRow{at.batch, 0, at.query};
      },
      "every head has the result of head 0", 0.2);
}

/// Splits merged with O or LSE of other rows of the query tile.
void by_split(const Scene& scene, std::vector<Supposition>& list) {
  if (scene.declared.splits < 1 || scene.declared.tile_n < 1) return;
  const AttentionProblem& problem = scene.attention()->problem;
  const auto same = [](const AttentionRow& at) { return at; };
  const auto first = [](const AttentionRow& at) {
    return AttentionRow{at.batch, at.head, at.query / kQueryTile * kQueryTile};
  };
  const auto beside = [&problem](std::int64_t by) {
    return [&problem, by](const AttentionRow& at) {
      const std::int64_t start = at.query / kQueryTile * kQueryTile;
      const std::int64_t rows = std::min(kQueryTile, problem.q_len(at.batch) - start);
      return AttentionRow{at.batch, at.head, start + (at.query - start + by + rows) % rows};
    };
  };
  const auto add = [&](RowMap o_of_last, RowMap lse_of, std::string text, double cost) {
    list.push_back(suppose(
        scene,
        [&scene, o_of_last = std::move(o_of_last), lse_of = std::move(lse_of)](std::size_t row) {
          return merged(scene, scene.attention()->row(row), o_of_last, lse_of);
        },
        std::move(text), cost));
  };
  add(same, first,
      fmt::format("{} splits are merged with the LSE of the first query of the tile", scene.declared.splits), 0.1);
  add(beside(1), same, fmt::format("O of the last of {} splits is that of the next query", scene.declared.splits), 0.1);
  add(beside(-1), same, fmt::format("O of the last of {} splits is that of the previous query", scene.declared.splits),
      0.1);
  add(first, same,
      fmt::format("O of the last of {} splits is that of the first query of the tile", scene.declared.splits), 0.2);
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  std::vector<Supposition> list;
  if (scene.c.op == "merge") {
    const MergeParams p = merge_params(scene.problem.params);
    if (p.parts > p.dim_v)
      list.push_back(suppose_parts(
          scene, [width = p.dim_v](std::int32_t part) { return part < width; },
          fmt::format("of {} parts only the first {}, as many as channels, are merged", p.parts, p.dim_v)));
    return list;
  }
  if (scene.c.op != "attention") return list;
  folded(scene, list);
  by_split(scene, list);
  return list;
}

/// More parts than before: the last one and those beyond the width are no longer the same.
std::optional<FollowUp> follow_up(const Scene& scene, std::string_view rival) {
  if (scene.c.op != "merge" || rival != "dropped_keys") return std::nullopt;
  Case more = scene.c;
  more.params.set("parts", fmt::format("{}", merge_params(scene.problem.params).parts + 3));
  return FollowUp{materialize(more), "with three more parts"};
}

const RegisterMode kRegister({.name = "reduce_row_fold",
                              .id = "M17",
                              .title = "Partial results of another row",
                              .hypotheses = hypotheses,
                              .follow_up = follow_up});

}  // namespace
}  // namespace assay
