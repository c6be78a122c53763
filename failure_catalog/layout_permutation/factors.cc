// Factors of the wrong head are ratios of numbers that the case has; those of the wrong block make another problem,
// with one factor per token.
#include "failure_catalog/layout_permutation/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "failure_catalog/suppose.h"

namespace assay {
namespace {

struct Which {
  std::string_view what;
  bool q, k, v;
};
constexpr std::array<Which, 4> kWhich{Which{"v", false, false, true}, Which{"k", false, true, false},
                                      Which{"q", true, false, false}, Which{"q, k and v", true, true, true}};

const Tensor* input_of(const Problem& problem, std::string_view role) {
  for (const Tensor& t : problem.inputs)
    if (t.layout.role == role) return &t;
  return nullptr;
}

/// Key heads as the kernel may have counted them, by query head.
struct HeadCount {
  std::string what;
  std::function<std::int64_t(std::int64_t head, const AttentionParams&)> factor_of;
};

const std::vector<HeadCount>& head_counts() {
  static const std::vector<HeadCount> all{
      {"h mod hkv", [](std::int64_t h, const AttentionParams& p) { return h % p.heads_kv; }},
      {"0", [](std::int64_t, const AttentionParams&) { return std::int64_t{0}; }},
      {"g + 1",
       [](std::int64_t h, const AttentionParams& p) { return (h / (p.heads_q / p.heads_kv) + 1) % p.heads_kv; }},
  };
  return all;
}

void add_heads(const Scene& scene, AttentionView& view, std::vector<Supposition>& all) {
  for (const HeadCount& count : head_counts())
    for (const Which& which : kWhich) {
      const auto predict = [&scene, &view, count, which](std::size_t r, double) -> std::optional<RowOutput> {
        const AttentionRow& row = view.row(r);
        const std::int64_t right = view.problem.kv_head(row.head),
                           wrong = count.factor_of(row.head, view.problem.params());
        const auto ratio = [&](std::string_view role) {
          const TensorView t = input_of(scene.problem, role)->view();
          return t.value(t.element(row.batch, wrong)) / t.value(t.element(row.batch, right));
        };
        const double logits = (which.q ? ratio("q_scale") : 1) * (which.k ? ratio("k_scale") : 1);
        const double values = which.v ? ratio("v_scale") : 1;
        if (!std::isfinite(logits) || !std::isfinite(values) || (logits == 1 && values == 1)) return std::nullopt;
        return answer(view, row, view.keys(r), {.gain = logits, .output_gain = values});
      };
      all.push_back({.predict = predict, .evidence = [count, which](const FitAt&) {
                       return fmt::format(
                           "the factor of {} is that of key head {}, not of the row's own g = h / (hq / hkv)",
                           which.what, count.what);
                     }});
    }
}

/// The problem with one factor per token: token t gets that of block index(t).
Problem per_token(const Scene& scene, const Which& which, const std::function<std::int64_t(std::int64_t)>& index) {
  const AttentionParams p = attention_params(scene.problem.params);
  Problem problem = scene.problem;
  problem.params.set("scale_block", "1");
  for (Tensor& t : problem.inputs) {
    const std::string& role = t.layout.role;
    if (role != "q_scale" && role != "k_scale" && role != "v_scale") continue;
    const bool moved = role == "q_scale" ? which.q : role == "k_scale" ? which.k : which.v;
    const std::int64_t tokens = std::max<std::int64_t>(1, role == "q_scale" ? p.len_q : p.len_kv);
    Tensor wide{t.layout, {}};
    wide.layout.shape[2] = tokens;
    wide.layout.strides = {wide.layout.shape[1] * tokens, tokens, 1};
    wide.layout.offset = 0;
    wide.layout.storage = wide.layout.count();
    wide.bytes.resize(static_cast<std::size_t>(wide.layout.storage_bytes()));
    for (std::int64_t b = 0; b < wide.layout.shape[0]; ++b)
      for (std::int64_t h = 0; h < wide.layout.shape[1]; ++h)
        for (std::int64_t token = 0; token < tokens; ++token) {
          const std::int64_t own = token / p.scale_block, last = t.layout.shape[2] - 1;
          const std::int64_t block = std::clamp<std::int64_t>(moved ? index(token) : own, 0, last);
          const TensorView from = t.view();
          wide.output().set_code(wide.view().element(b, h, token), from.code(from.element(b, h, block)));
        }
    t = std::move(wide);
  }
  return problem;
}

/// Blocks as the kernel may have counted them, by token.
struct Indexing {
  std::string what;
  std::function<std::int64_t(std::int64_t token)> block_of;
};

void add_blocks(const Scene& scene, std::vector<Supposition>& all) {
  const std::int64_t own = attention_params(scene.problem.params).scale_block;
  std::vector<Indexing> indices;
  indices.push_back({"the first block", [](std::int64_t) { return std::int64_t{0}; }});
  for (const std::int64_t size : {128, 64, 32, 16, 256})
    if (size != own)
      indices.push_back(
          {fmt::format("the block counted in {} tokens", size), [size](std::int64_t t) { return t / size; }});
  indices.push_back({"the next block", [own](std::int64_t t) { return t / own + 1; }});
  indices.push_back({"the block before", [own](std::int64_t t) { return t / own - 1; }});
  for (const Which& which : {kWhich[3], kWhich[0], kWhich[1], kWhich[2], Which{"k and v", false, true, true}})
    for (const Indexing& by : indices) {
      struct Other {
        explicit Other(Problem p) : problem(std::move(p)), view(problem) {}
        const Problem problem;
        AttentionView view;
      };
      const auto other = std::make_shared<std::unique_ptr<Other>>();
      const auto predict = [&scene, other, which, by](std::size_t r, double) -> std::optional<RowOutput> {
        if (*other == nullptr) *other = std::make_unique<Other>(per_token(scene, which, by.block_of));
        AttentionView& view = (*other)->view;
        return answer(view, view.row(r), view.keys(r));
      };
      all.push_back({.predict = predict, .evidence = [by, which, own](const FitAt&) {
                       return fmt::format("the factors of {} are those of {}, where blocks have {} tokens", which.what,
                                          by.what, own);
                     }});
    }
}

}  // namespace

std::vector<Supposition> wrong_factors(const Scene& scene) {
  std::vector<Supposition> all;
  AttentionView* view = scene.attention();
  if (view == nullptr) return all;
  if (view->problem.params().descale == Descale::kHead && view->problem.params().heads_kv > 1)
    add_heads(scene, *view, all);
  if (view->problem.params().descale == Descale::kBlock) add_blocks(scene, all);
  return all;
}

}  // namespace assay
