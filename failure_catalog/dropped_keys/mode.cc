// M12: keys that should take part do not: the last one, one of every tile, a whole tile, split or part.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "failure_catalog/dropped_keys/interval.h"
#include "failure_catalog/merge_suppose.h"
#include "failure_catalog/suppose.h"

namespace assay {
namespace {

constexpr std::int64_t kQueryTile = 64;

using Drops = std::function<bool(const AttentionRow& row, std::int64_t key, std::int64_t length)>;

Supposition without(const Scene& scene, Drops drops, std::string text, double cost) {
  AttentionView* view = scene.attention();
  return suppose_keys(
      scene,
      [view, drops = std::move(drops)](std::size_t row, std::vector<std::int32_t>& keys) {
        const AttentionRow& at = view->row(row);
        const std::int64_t length = view->problem.kv_len(at.batch);
        std::erase_if(keys, [&](std::int32_t key) { return drops(at, key, length); });
      },
      std::move(text), cost);
}

void ends_and_tiles(const Scene& scene, std::vector<Supposition>& list) {
  const AttentionProblem& problem = scene.attention()->problem;
  list.push_back(without(
      scene, [](const AttentionRow&, std::int64_t key, std::int64_t length) { return length > 1 && key == length - 1; },
      "the last key of each sequence is missing", 0.1));
  list.push_back(without(
      scene, [](const AttentionRow&, std::int64_t key, std::int64_t length) { return length > 1 && key == 0; },
      "key 0 of each sequence is missing", 0.1));
  for (const std::int64_t tile : tile_sizes(scene)) {
    list.push_back(without(
        scene, [tile](const AttentionRow&, std::int64_t key, std::int64_t) { return key % tile == tile - 1; },
        fmt::format("the last of every {} keys is missing", tile), 0.2));
    list.push_back(without(
        scene, [tile](const AttentionRow&, std::int64_t key, std::int64_t) { return key % tile == 0; },
        fmt::format("the first of every {} keys is missing", tile), 0.2));
    list.push_back(without(
        scene,
        [tile](const AttentionRow&, std::int64_t key, std::int64_t length) {
          return length > tile && key >= length / tile * tile;
        },
        fmt::format("the keys behind the last multiple of {} are missing", tile), 0.2));
    list.push_back(without(
        scene,
        [tile, &problem](const AttentionRow& row, std::int64_t key, std::int64_t) {
          const std::int64_t end = problem.key_span(row).second;
          return end > tile && key >= (end - 1) / tile * tile;
        },
        fmt::format("the last tile of {} keys that a row sees is missing, but for rows with one tile", tile), 0.25));
  }
}

/// Tiles left out by a wrong test of what a query tile sees; the diagonal, not the mask, bounds the loop.
void by_query_tile(const Scene& scene, std::vector<Supposition>& list) {
  const AttentionProblem& problem = scene.attention()->problem;
  const auto end_of = [&problem](const AttentionRow& row, std::int64_t query) {
    return problem.key_span({row.batch, row.head, query}).second;
  };
  const auto first_query = [](const AttentionRow& row) { return row.query / kQueryTile * kQueryTile; };
  for (const std::int64_t tile : tile_sizes(scene)) {
    list.push_back(without(
        scene,
        [=](const AttentionRow& row, std::int64_t key, std::int64_t length) {
          const std::int64_t start = key / tile * tile;
          return start > 0 && std::min(start + tile, length) > end_of(row, first_query(row));
        },
        fmt::format("key tiles of {} that a query tile sees in part are skipped", tile), 0.3));
    list.push_back(without(
        scene,
        [=, &problem](const AttentionRow& row, std::int64_t key, std::int64_t length) {
          const std::int64_t queries = problem.q_len(row.batch);
          const std::int64_t last = std::min(first_query(row) + kQueryTile, queries) - 1;
          return key / tile * tile > last + length - queries;
        },
        fmt::format("key tiles of {} beyond the diagonal are skipped although the mask is not causal", tile), 0.3));
  }
  const AttentionParams& p = problem.params();
  if (p.window_left >= 0)
    list.push_back(without(
        scene,
        [left = p.window_left](const AttentionRow&, std::int64_t key, std::int64_t length) {
          return key < length - 1 - left;
        },
        fmt::format("all keys but the last {} of the sequence are cut off, the window of the last query",
                    p.window_left + 1),
        0.2));
}

/// The last split of each sequence that has two or more, of whole tiles in as many equal ranges as are declared.
void last_split(const Scene& scene, std::vector<Supposition>& list) {
  const std::int64_t tile = scene.declared.tile_n, splits = scene.declared.splits;
  if (splits < 2 || tile < 1) return;
  list.push_back(without(
      scene,
      [=](const AttentionRow&, std::int64_t key, std::int64_t length) {
        const std::int64_t size = ((length + tile - 1) / tile + splits - 1) / splits * tile,
                           start = (length - 1) / size * size;
        return start > 0 && key >= start;
      },
      fmt::format("the last of {} splits is missing", splits), 0.1));
}

/// Runs of keys as the first failing rows show them.
void found_runs(const Scene& scene, std::vector<Supposition>& list) {
  constexpr std::size_t kRowsAsked = 3;
  std::set<std::pair<std::int32_t, std::int32_t>> runs;
  for (std::size_t n = 0; n < std::min(kRowsAsked, scene.trial().failing_rows()); ++n)
    if (const auto run = missing_run(scene, n)) runs.insert(*run);
  for (const auto& [first, last] : runs)
    list.push_back(without(
        scene,
        [first = first, last = last](const AttentionRow&, std::int64_t key, std::int64_t) {
          return key >= first && key <= last;
        },
        first == last ? fmt::format("key {} is missing", first) : fmt::format("keys {}..{} are missing", first, last),
        0.4));
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  std::vector<Supposition> list;
  if (scene.c.op == "merge") {
    const MergeParams p = merge_params(scene.problem.params);
    for (std::int64_t part = 0; part < std::min<std::int64_t>(p.parts, 64); ++part)
      list.push_back(suppose_parts(
          scene, [part](std::int32_t s) { return s != part; },
          fmt::format("part {} of {} is not merged", part, p.parts), part + 1 == p.parts ? 0.1 : 0.2));
    return list;
  }
  if (scene.c.op != "attention") return list;
  ends_and_tiles(scene, list);
  by_query_tile(scene, list);
  last_split(scene, list);
  found_runs(scene, list);
  return list;
}

const RegisterMode kRegister(
    {.name = "dropped_keys", .id = "M12", .title = "Keys are missing", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
