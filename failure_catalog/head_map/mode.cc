// M13: query heads read the wrong kv head, or the query of another head.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "failure_catalog/suppose.h"

namespace assay {
namespace {

using HeadMap = std::function<std::int64_t(std::int64_t head)>;

enum class Side : std::uint8_t { kBoth, kKeys, kValues };

struct Named {
  HeadMap map;
  std::string text;
  double cost = 0;
};

/// Maps worth trying for query heads of `group` per kv head.
std::vector<Named> kv_maps(std::int64_t kv_heads, std::int64_t group) {
  return {
      {[=](std::int64_t h) { return h % kv_heads; }, fmt::format("h mod {}", kv_heads), 0},
      {[=](std::int64_t h) { return h / kv_heads % kv_heads; }, fmt::format("h / {} mod {}", kv_heads, kv_heads), 0},
      {[](std::int64_t) { return std::int64_t{0}; }, "0", 0.1},
      {[=](std::int64_t) { return kv_heads - 1; }, fmt::format("{}", kv_heads - 1), 0.2},
      {[=](std::int64_t h) { return std::min(h, kv_heads - 1); }, fmt::format("min(h, {})", kv_heads - 1), 0.2},
      {[=](std::int64_t h) { return (h / group + 1) % kv_heads; }, fmt::format("h / {} + 1", group), 0.2},
      {[=](std::int64_t h) { return (h / group + kv_heads - 1) % kv_heads; }, fmt::format("h / {} - 1", group), 0.2},
      {[=](std::int64_t h) { return kv_heads - 1 - h / group; }, fmt::format("{} - h / {}", kv_heads - 1, group), 0.2},
      {[=](std::int64_t h) { return h / 2 % kv_heads; }, "h / 2", 0.3}};
}

std::string example(const HeadMap& map, std::int64_t heads, std::int64_t group) {
  for (std::int64_t h = 0; h < heads; ++h)
    if (map(h) != h / group) return fmt::format(" (head {} uses {} instead of {})", h, map(h), h / group);
  return "";
}

void reads_kv_head(const Scene& scene, std::vector<Supposition>& list) {
  AttentionView* view = scene.attention();
  const AttentionParams& p = view->problem.params();
  const std::int64_t group = p.heads_q / p.heads_kv;
  constexpr std::array<std::string_view, 3> kSides{"keys and values", "keys", "values"};
  for (const Named& named : kv_maps(p.heads_kv, group))
    for (const Side side : {Side::kBoth, Side::kKeys, Side::kValues}) {
      const auto predict = [view, map = named.map, side](std::size_t row) -> std::optional<RowOutput> {
        const AttentionRow& at = view->row(row);
        const std::int64_t head = map(at.head);
        if (head == view->problem.kv_head(at.head)) return std::nullopt;
        return answer(*view, at, view->keys(row),
                      {.k_head = side == Side::kValues ? -1 : head, .v_head = side == Side::kKeys ? -1 : head});
      };
      list.push_back(suppose(
          scene, predict,
          fmt::format("query head h reads the {} of kv head {} instead of h / {}{}",
                      kSides[static_cast<std::size_t>(side)], named.text, group, example(named.map, p.heads_q, group)),
          named.cost + (side == Side::kBoth ? 0 : 0.1)));
    }
}

/// The query of another head, everything else the row's own; or the other head's row as a whole.
void reads_query_head(const Scene& scene, std::vector<Supposition>& list) {
  AttentionView* view = scene.attention();
  const AttentionParams& p = view->problem.params();
  const std::int64_t group = p.heads_q / p.heads_kv, heads = p.heads_q;
  const std::vector<Named> maps{
      {[=](std::int64_t h) { return h % group >= 8 ? h - 8 : h; }, "h - 8 beyond the eighth of a group", 0},
      {[=](std::int64_t h) { return h / group * group; }, "the first of the group", 0.2},
      {[=](std::int64_t h) { return h % p.heads_kv * group + h / p.heads_kv; }, "heads transposed within the groups",
       0.2},
      {[=](std::int64_t h) { return (h + 1) % heads; }, "h + 1", 0.3},
      {[=](std::int64_t h) { return (h + heads - 1) % heads; }, "h - 1", 0.3}};
  for (const Named& named : maps) {
    const auto query = [view, map = named.map](std::size_t row) -> std::optional<RowOutput> {
      const AttentionRow& at = view->row(row);
      if (map(at.head) == at.head) return std::nullopt;
      return answer(*view, at, view->keys(row), {.q_head = map(at.head)});
    };
    list.push_back(suppose(scene, query, fmt::format("query head h reads the query of another: {}", named.text),
                           named.cost + 0.05));
    const auto whole = [view, map = named.map](std::size_t row) -> std::optional<RowOutput> {
      const AttentionRow& at = view->row(row);
      const AttentionRow from{at.batch, map(at.head), at.query};
      if (from.head == at.head) return std::nullopt;
      std::vector<std::int32_t> keys;
      view->problem.admissible_keys(from, keys);
      return answer(*view, from, keys);
    };
    list.push_back(suppose(scene, whole, fmt::format("query head h gives the result of another: {}", named.text),
                           named.cost + 0.1));
  }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention") return {};
  const AttentionParams& p = scene.attention()->problem.params();
  std::vector<Supposition> list;
  if (p.heads_kv > 1) reads_kv_head(scene, list);
  if (p.heads_q > 1) reads_query_head(scene, list);
  return list;
}

const RegisterMode kRegister({.name = "head_map", .id = "M13", .title = "Wrong kv head", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
