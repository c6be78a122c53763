// The packed batch read as one sequence: a problem of batch 1 over the same tokens.
#include "failure_catalog/mask_edge/packed.h"

#include <fmt/format.h>

#include "failure_catalog/suppose.h"

namespace assay {
namespace {

std::optional<Problem> joined(const Problem& problem, std::int64_t tokens_q, std::int64_t tokens_kv) {
  Problem one = with_params(problem, {{"b", "1"},
                                      {"sq", fmt::format("{}", tokens_q)},
                                      {"skv", fmt::format("{}", tokens_kv)},
                                      {"q_lens", fmt::format("{}", tokens_q)},
                                      {"kv_lens", fmt::format("{}", tokens_kv)}});
  for (const char* role : {"cu_seqlens_q", "cu_seqlens_kv"}) {
    Tensor* starts = find_tensor(one, role);
    if (starts == nullptr) return std::nullopt;
    const std::int64_t last = starts->view().element(starts->layout.shape[0] - 1);
    const std::uint64_t total = load_code(starts->bytes.data(), starts->layout.format, last);
    starts->layout.shape[0] = 2;
    store_code(starts->bytes.data(), starts->layout.format, starts->view().element(1), total);
  }
  return one;
}

}  // namespace

std::vector<Supposition> packed_boundaries_ignored(const Scene& scene) {
  const AttentionProblem& own = scene.attention()->problem;
  const AttentionParams& p = own.params();
  if (p.batching != Batching::kPacked || p.kv_store != KvStore::kContiguous || p.batch < 2 || p.segments ||
      p.data_mask != DataMask::kNone || p.prefix > 0 || p.sampled_rows > 0)
    return {};
  std::vector<std::int64_t> starts{0};
  std::int64_t keys = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    starts.push_back(starts.back() + own.q_len(b));
    keys += own.kv_len(b);
  }
  const auto other = std::make_shared<Lazily>(
      scene, [&scene, queries = starts.back(), keys] { return joined(scene.problem, queries, keys); });
  const bool by_position = p.causal || p.window_left >= 0 || p.window_right >= 0 || p.alibi != Alibi::kNone;
  const auto predict = [&scene, other, starts, keys](std::size_t row, bool own_queries) -> std::optional<RowOutput> {
    AttentionView* view = other->view();
    if (view == nullptr) return std::nullopt;
    const AttentionProblem& problem = scene.attention()->problem;
    const AttentionRow& at = scene.attention()->row(row);
    const AttentionRow together{0, at.head, starts[static_cast<std::size_t>(at.batch)] + at.query};
    // A mask aligned by the row's own query length sees it as one of the last: row total - own + i of the joint one.
    const bool top_left = problem.params().align == Align::kTopLeft;
    const std::int64_t in_joint = top_left ? at.query : starts.back() - problem.q_len(at.batch) + at.query;
    const std::int64_t as = own_queries ? in_joint : together.query;
    std::vector<std::int32_t> all;
    view->problem.admissible_keys({0, at.head, as}, all);
    if (problem.params().alibi == Alibi::kNone || as == together.query) return answer(*view, together, all);
    return answer(*view, together, all, biased_as(*view, {0, at.head, as}));
  };
  std::vector<Supposition> list;
  list.push_back(suppose(
      scene, [predict](std::size_t row) { return predict(row, false); },
      fmt::format("sequence boundaries of the packed batch are ignored: {} sequences share {} keys", p.batch, keys)));
  if (by_position)
    list.push_back(suppose(
        scene, [predict](std::size_t row) { return predict(row, true); },
        fmt::format("each sequence of the packed batch sees the keys of all {}", p.batch), 0.1));
  return list;
}

}  // namespace assay
