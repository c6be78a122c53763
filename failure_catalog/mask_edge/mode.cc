// M10: the edge of a mask in the wrong place: diagonal or window shifted or aligned otherwise, a mask or boundary
// ignored.
#include <fmt/format.h>

#include <algorithm>

#include "failure_catalog/mask_edge/packed.h"
#include "failure_catalog/suppose.h"

namespace assay {
namespace {

/// Which keys a row sees by length, causality and window, under other rules than the declared ones.
struct Rules {
  bool causal = false, top_left = false, left_exclusive = false, longest = false;
  std::int64_t left = -1, right = -1;
  std::int64_t first_by = 0, end_by = 0;  ///< the edges are shifted by so much
};

Rules declared(const AttentionParams& p) {
  return {.causal = p.causal,
          .top_left = p.align == Align::kTopLeft,
          .left_exclusive = p.window_ends == WindowEnds::kLeftExclusive,
          .left = p.window_left,
          .right = p.window_right};
}

/// The key that the first query stands at.
std::int64_t ahead_under(const Rules& rules, const AttentionProblem& problem, const AttentionRow& row) {
  if (rules.top_left) return 0;
  const AttentionParams& p = problem.params();
  return rules.longest ? p.len_kv - p.len_q : problem.kv_len(row.batch) - problem.q_len(row.batch);
}

void keys_under(const Rules& rules, const AttentionProblem& problem, const AttentionRow& row,
                std::vector<std::int32_t>& keys) {
  const std::int64_t kv = problem.kv_len(row.batch);
  const std::int64_t position = row.query + ahead_under(rules, problem, row);
  std::int64_t first = 0, end = kv;
  if (rules.causal) end = std::min(end, position + 1 + rules.end_by);
  if (rules.right >= 0) end = std::min(end, position + rules.right + 1 + rules.end_by);
  if (rules.left >= 0)
    first = std::max<std::int64_t>(0, position - rules.left + (rules.left_exclusive ? 1 : 0) + rules.first_by);
  keys.clear();
  for (std::int64_t key = first; key < end; ++key)
    if (problem.kept_by_data(row, key)) keys.push_back(static_cast<std::int32_t>(key));
}

class Suppositions {
 public:
  explicit Suppositions(const Scene& scene)
      : scene_(scene), problem_(scene.attention()->problem), p_(problem_.params()), rules_(declared(p_)) {}

  enum class Where : std::uint8_t { kEverywhere, kManyQueries, kOneQuery };

  void add(const Rules& rules, std::string text, double cost, Where where = Where::kEverywhere) {
    list.push_back(suppose_keys(
        scene_,
        [this_problem = &problem_, view = scene_.attention(), rules, where](std::size_t row,
                                                                            std::vector<std::int32_t>& keys) {
          const AttentionRow& at = view->row(row);
          const bool many = this_problem->q_len(at.batch) > 1;
          if (where != Where::kEverywhere && many != (where == Where::kManyQueries)) return;
          keys_under(rules, *this_problem, at, keys);
        },
        std::move(text), cost));
  }

  /// Whether positions decide which keys a row sees.
  bool masked() const { return p_.causal || p_.window_left >= 0 || p_.window_right >= 0; }

  /// Masks, and distances of ALiBi, under another alignment.
  void add_aligned(const Rules& rules, std::string text, double cost) {
    if (p_.alibi != Alibi::kDistance) return add(rules, std::move(text), cost);
    AttentionView* view = scene_.attention();
    list.push_back(suppose(
        scene_,
        [view, rules, own = rules_](std::size_t row) -> std::optional<RowOutput> {
          const AttentionRow& at = view->row(row);
          AttentionRow as = at;
          as.query += ahead_under(rules, view->problem, at) - ahead_under(own, view->problem, at);
          if (as.query == at.query) return std::nullopt;
          std::vector<std::int32_t> keys;
          keys_under(rules, view->problem, at, keys);
          return answer(*view, at, keys, biased_as(*view, as));
        },
        std::move(text), cost));
  }

  void alignment() {
    Rules other = rules_;
    other.top_left = !other.top_left;
    const std::string text = other.top_left ? "convention: top-left alignment instead of bottom-right"
                                            : "convention: bottom-right alignment instead of top-left";
    add_aligned(other, text, 0);
    if (masked()) add(other, text + " where there is one query", 0.1, Where::kOneQuery);
    if (p_.align != Align::kBottomRight) return;
    Rules longest = rules_;
    longest.longest = true;
    add_aligned(longest, "masks are aligned by the longest lengths of the batch instead of each sequence's", 0.1);
  }

  void conventions() {
    if (p_.window_left < 0) return;
    Rules other = rules_;
    other.left_exclusive = !other.left_exclusive;
    add(other,
        other.left_exclusive ? "convention: the window's first key is left out (exclusive instead of inclusive)"
                             : "convention: the window's first key takes part (inclusive instead of exclusive)",
        0);
  }

  void ignored() {
    Rules other = rules_;
    if (p_.causal) {
      other.causal = false;
      add(other, "the causal mask is not applied", 0);
    }
    other = rules_;
    other.left = -1;
    if (p_.window_left >= 0) add(other, "the left end of the window is not applied", 0);
    other.right = -1;
    if (p_.window_left >= 0 || p_.window_right >= 0) add(other, "the window is not applied", 0.1);
    other = rules_;
    std::swap(other.left, other.right);
    if (other.left != other.right) add(other, "the ends of the window are exchanged", 0.2);
  }

  /// Both edges, or one of them, by one or two keys.
  void shifted() {
    for (const std::int64_t by : {std::int64_t{1}, std::int64_t{-1}, std::int64_t{2}, std::int64_t{-2}}) {
      const double cost = by == 1 || by == -1 ? 0.2 : 0.3;
      const std::string keys = fmt::format("{} key{}", std::abs(by), std::abs(by) == 1 ? "" : "s");
      Rules other = rules_;
      other.end_by = by;
      if (p_.causal || p_.window_right >= 0)
        add(other,
            fmt::format("the {} edge lies {} too far to the {}", p_.causal ? "causal" : "right window", keys,
                        by > 0 ? "right" : "left"),
            cost);
      if (p_.window_left < 0) continue;
      other.first_by = by;
      add(other,
          fmt::format("the whole window lies {} too far to the {}, as if of another query", keys,
                      by > 0 ? "right" : "left"),
          cost + 0.1);
      add(other,
          fmt::format("the whole window lies {} too far to the {}, for two or more queries", keys,
                      by > 0 ? "right" : "left"),
          cost + 0.2, Where::kManyQueries);
      other.end_by = 0;
      add(other, fmt::format("the left window edge lies {} too far to the {}", keys, by > 0 ? "right" : "left"), cost);
    }
  }

  /// Masks that carry data, and segments.
  void data() {
    const Problem& raw = scene_.problem;
    if (p_.segments)
      list.push_back(suppose_key_rules(
          scene_,
          [&raw] {
            return with_params(raw, {{"segments", "0"}});
          },
          "segment boundaries are ignored"));
    if (p_.data_mask == DataMask::kNone || p_.data_mask == DataMask::kAdditive) return;
    const std::string without = p_.causal ? "causal" : "none";
    list.push_back(suppose_key_rules(
        scene_,
        [&raw, without] {
          return with_params(raw, {{"mask", without}});
        },
        "the mask tensor is not applied"));
    if (p_.data_mask != DataMask::kBool) return;
    AttentionView* view = scene_.attention();
    for (const std::int64_t by : {1, -1})
      list.push_back(suppose_keys(
          scene_,
          [view, by](std::size_t row, std::vector<std::int32_t>& keys) {
            const AttentionRow& at = view->row(row);
            const auto [first, end] = view->problem.key_span(at);
            const std::int64_t all = view->problem.kv_len(at.batch);
            keys.clear();
            for (std::int64_t key = first; key < end; ++key)
              if (key + by >= 0 && key + by < all && view->problem.kept_by_data(at, key + by))
                keys.push_back(static_cast<std::int32_t>(key));
          },
          fmt::format("the mask of key j is applied to key j {} 1", by > 0 ? "-" : "+"), 0.3));
    list.push_back(suppose_keys(
        scene_,
        [view](std::size_t row, std::vector<std::int32_t>& keys) {
          const AttentionRow& at = view->row(row);
          const std::int64_t last = view->problem.kv_len(at.batch) - 1;
          if (last >= 1 && !view->problem.kept_by_data(at, last)) std::erase(keys, static_cast<std::int32_t>(last - 1));
        },
        "a mask that hides the last key hides the one before it too: its length is off by one", 0.3));
  }

  std::vector<Supposition> list;

 private:
  const Scene& scene_;
  const AttentionProblem& problem_;
  const AttentionParams& p_;
  Rules rules_;
};

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention") return {};
  const AttentionParams& p = scene.attention()->problem.params();
  Suppositions s(scene);
  if (s.masked() || p.alibi == Alibi::kDistance) s.alignment();
  if (s.masked()) {
    s.conventions();
    s.ignored();
    s.shifted();
  }
  s.data();
  for (Supposition& joined : packed_boundaries_ignored(scene)) s.list.push_back(std::move(joined));
  return std::move(s.list);
}

const RegisterMode kRegister(
    {.name = "mask_edge", .id = "M10", .title = "Mask edge in the wrong place", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay
