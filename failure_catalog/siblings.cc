// Siblings by op: which parameters make more rows, longer rows, and plainer logits.
#include "failure_catalog/siblings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "cases/legal.h"
#include "failure_catalog/second_run.h"
#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"
#include "oracle/ops/merge/merge.h"
#include "oracle/ops/softmax/softmax.h"

namespace assay {
namespace {

constexpr std::int64_t kLonger = 128;        // a multiple of all tiles
constexpr std::int64_t kProducts = 1 << 24;  // row by key by channel of a sibling, at most
constexpr std::int64_t kElements = 1 << 19;  // of its inputs
constexpr std::int64_t kLongEnough = 512;    // keys

/// A case on its way to a sibling.
struct Draft {
  Case c;
  std::vector<std::string> changes;

  void set(std::string_view key, std::int64_t value) { c.params.set(key, fmt::format("{}", value)); }
  bool has(std::string_view key, std::string_view value) const {
    const std::string* text = c.params.find(key);
    return text != nullptr && *text == value;
  }
};

void reseed(Draft& draft, std::uint64_t round) {
  constexpr std::uint64_t kApart = 1000003;
  for (auto& [role, source] : draft.c.sources)
    if (source.recipe != "file") source.seed += kApart * round;
  draft.changes.push_back(round == 1 ? "other seeds" : "other seeds again");
}

void with_lse(Draft& draft) {
  const bool merge = draft.c.op == "merge";
  const bool without = merge ? draft.has("lse", "no")
                             : draft.has("lse", "none") || (draft.c.op == "softmax" && !draft.c.params.find("lse"));
  if (!without) return;
  draft.c.params.set("lse", merge ? "yes" : "e");
  draft.changes.emplace_back("the LSE");
}

/// Up to eight times as many heads, or rows of other ops.
void widen(Draft& draft) {
  std::int64_t rows = 0, cost = 0;
  const bool attention = draft.c.op == "attention";
  std::int64_t heads_kv = 0;
  if (attention) {
    const AttentionParams p = attention_params(draft.c.params);
    if (p.sampled_rows > 0) return;
    rows = p.heads_q, heads_kv = p.heads_kv;
    cost = p.batch * rows * p.len_q * p.len_kv * (p.dim_qk + p.dim_v);
  } else if (draft.c.op == "softmax") {
    const SoftmaxParams p = softmax_params(draft.c.params);
    rows = p.rows, cost = rows * p.n * 64;
  } else {
    const MergeParams p = merge_params(draft.c.params);
    rows = p.rows, cost = rows * p.parts * p.dim_v;
  }
  std::int64_t times = 8;
  while (times > 1 && times * cost > kProducts) times /= 2;
  if (times == 1 || rows < 1) return;
  draft.set(attention ? "hq" : "rows", times * rows);
  if (attention) draft.set("hkv", times * heads_kv);
  draft.changes.push_back(fmt::format("{} {} for {}", times * rows, attention ? "heads" : "rows", rows));
}

std::string longer(std::vector<std::int64_t> lens) {
  for (std::int64_t& len : lens)
    if (len > 0) len += kLonger;
  return fmt::format("{}", fmt::join(lens, ","));
}

/// As many keys more as queries, where there are several, so that masks stand where they stood.
void lengthen(Draft& draft) {
  if (draft.c.op == "merge") return;
  if (draft.c.op == "softmax") {
    const SoftmaxParams p = softmax_params(draft.c.params);
    if (p.n == 0 || p.n >= kLongEnough) return;
    draft.set("n", p.n + kLonger);
    draft.changes.push_back(fmt::format("{} keys for {}", p.n + kLonger, p.n));
    return;
  }
  const AttentionParams p = attention_params(draft.c.params);
  if (p.len_kv == 0 || p.len_kv >= kLongEnough) return;
  draft.set("skv", p.len_kv + kLonger);
  if (draft.c.params.find("kv_lens") != nullptr) draft.c.params.set("kv_lens", longer(p.lens_kv));
  draft.changes.push_back(fmt::format("{} keys for {}", p.len_kv + kLonger, p.len_kv));
  if (p.len_q < 2 || p.len_q >= kLongEnough) return;
  draft.set("sq", p.len_q + kLonger);
  if (draft.c.params.find("q_lens") != nullptr) draft.c.params.set("q_lens", longer(p.lens_q));
  draft.changes.push_back(fmt::format("{} queries for {}", p.len_q + kLonger, p.len_q));
}

/// Normal numbers in vectors, masks of single keys, nothing replaced, and numbers where nothing is used.
void plain(Draft& draft) {
  bool changed = !draft.c.overrides.empty();
  draft.c.overrides.clear();
  draft.c.poison = Poison::kTag;
  for (auto& [role, source] : draft.c.sources) {
    if (!(holds_vectors(role) || role == "lse_parts") || source.recipe == "file" ||
        (source.recipe == "normal" && source.args.empty()))
      continue;
    source.recipe = "normal";
    source.args.clear();
    changed = true;
  }
  if (const std::string* mask = draft.c.params.find("mask"); mask != nullptr && mask->ends_with("bool"))
    for (auto& [role, source] : draft.c.sources)
      if (role == "mask" && source.recipe != "file" && source.recipe != "keep") {
        source.recipe = "keep";
        source.args = {"0.75"};
        changed = true;
      }
  if (changed) draft.changes.emplace_back("normal values");
}

/// Logits so far apart that exponents reach the ends of their range.
void steepen(Draft& draft) {
  for (auto& [role, source] : draft.c.sources)
    if ((role == "q" || role == "x" || role == "lse_parts") && source.recipe == "normal" && source.args.empty()) {
      source.args = {"30"};
      draft.changes.emplace_back(role + " 30 times as large");
    }
}

/// Options that bend or hide logits, move values or add keys, each with what belongs to it.
struct Option {
  std::string_view key;
  std::initializer_list<std::string_view> parts;
};
constexpr std::initializer_list<std::string_view> kAlone{};
const Option kOptions[] = {
    {"scale", kAlone},    {"softcap", kAlone},         {"alibi", {"slopes"}},        {"sink", kAlone},
    {"segments", kAlone}, {"window", {"window_ends"}}, {"descale", {"scale_block"}}, {"prefix", kAlone},
    {"v_from", kAlone},   {"mask", {"block", "list"}}};

bool stands(const Draft& draft, std::string_view key) {
  const std::string* text = draft.c.params.find(key);
  return text != nullptr && (key != "mask" || *text != "causal");
}

/// None of those options but `kept`. A causal mask stays.
void bare(Draft& draft, std::string_view kept = {}) {
  bool changed = false;
  for (const Option& option : kOptions) {
    if (option.key == kept || !stands(draft, option.key)) continue;
    changed = true;
    const bool causal = option.key == "mask" && draft.c.params.find("mask")->starts_with("causal");
    draft.c.params.erase(option.key);
    for (const std::string_view part : option.parts) draft.c.params.erase(part);
    if (causal) draft.c.params.set("mask", "causal");
  }
  if (changed) draft.changes.push_back(kept.empty() ? "plain options" : fmt::format("plain options but {}", kept));
}

bool small_enough(const Case& c) {
  std::int64_t elements = 0;
  for (const InputSpec& spec : op_named(c.op).inputs(c.params)) elements += spec.layout.storage;
  return elements <= kElements;
}

}  // namespace

std::vector<Sibling> siblings(const Case& c) {
  struct Kind {
    std::uint64_t round = 1;
    bool wide = false, lse = false, longer = false, plain = false, bare = false, steep = false;
    std::string_view kept = {};  ///< with bare
  };
  std::vector<Kind> kinds{{.wide = true, .lse = true},
                          {.wide = true, .lse = true, .longer = true, .plain = true},
                          {.wide = true, .lse = true, .longer = true, .plain = true, .bare = true},
                          {.wide = true, .longer = true, .plain = true},
                          {.wide = true, .longer = true},
                          {.wide = true, .plain = true},
                          {.wide = true, .bare = true},
                          {},
                          {.round = 2, .wide = true, .lse = true, .longer = true}};
  kinds.push_back({.wide = true, .lse = true, .longer = true, .plain = true, .bare = true, .steep = true});
  // One option at a time: a fault in one of them shows, and the others cannot hide what it is.
  for (const Option& option : kOptions)
    if (stands({c, {}}, option.key))
      for (const bool longer : {false, true})
        kinds.push_back(
            {.wide = true, .lse = true, .longer = longer, .plain = longer, .bare = true, .kept = option.key});
  std::vector<Sibling> all;
  for (const Kind& kind : kinds) {
    Draft draft{c, {}};
    reseed(draft, kind.round);
    if (kind.bare) bare(draft, kind.kept);
    if (kind.plain) plain(draft);
    if (kind.steep) steepen(draft);
    if (kind.longer) lengthen(draft);
    if (kind.wide) widen(draft);
    if (kind.lse) with_lse(draft);
    std::optional<Case> legal = legal_case(std::move(draft.c));
    if (!legal || *legal == c || !small_enough(*legal)) continue;
    if (std::any_of(all.begin(), all.end(), [&](const Sibling& s) { return s.c == *legal; })) continue;
    all.push_back({std::move(*legal), fmt::format("{}", fmt::join(draft.changes, ", "))});
  }
  return all;
}

}  // namespace assay
