// Declared arithmetic as JSON: the table of names and one visitor for writing, reading and counting unknowns.
#include "oracle/arithmetic_json.h"

#include <array>
#include <string_view>
#include <nlohmann/json.hpp>

namespace assay {

namespace {

// Names in the order of the enumerators of oracle/arithmetic.h; the last is always kUnknown.
constexpr std::array<std::string_view, 4> kAccumulate = {"fp32", "block_ampere", "block_hopper", "unknown"};
constexpr std::array<std::string_view, 4> kScoreStore = {"fp32", "bf16", "fp16", "unknown"};
constexpr std::array<std::string_view, 3> kScaleForm = {"folded", "on_score", "unknown"};
constexpr std::array<std::string_view, 4> kExponential = {"ex2_approx", "polynomial3", "ex2_hopper", "unknown"};
constexpr std::array<std::string_view, 3> kRowSumOf = {"unrounded_p", "rounded_p", "unknown"};
constexpr std::array<std::string_view, 3> kRowSumTree = {"sequential", "quad", "unknown"};
constexpr std::array<std::string_view, 4> kNormalize = {"reciprocal", "divide", "every_step", "unknown"};
constexpr std::array<std::string_view, 4> kTanh = {"two_ulp", "approx", "approx_hopper", "unknown"};
constexpr std::array<std::string_view, 3> kSubnormals = {"kept", "flushed", "unknown"};
constexpr std::array<std::string_view, 5> kMaxPolicy = {"every_tile", "global", "lazy", "own_tile", "unknown"};
constexpr std::array<std::string_view, 3> kTileOrder = {"forward", "backward", "unknown"};

static_assert(kAccumulate.size() == static_cast<std::size_t>(Accumulate::kUnknown) + 1);
static_assert(kScoreStore.size() == static_cast<std::size_t>(ScoreStore::kUnknown) + 1);
static_assert(kScaleForm.size() == static_cast<std::size_t>(ScaleForm::kUnknown) + 1);
static_assert(kExponential.size() == static_cast<std::size_t>(Exponential::kUnknown) + 1);
static_assert(kRowSumOf.size() == static_cast<std::size_t>(RowSumOf::kUnknown) + 1);
static_assert(kRowSumTree.size() == static_cast<std::size_t>(RowSumTree::kUnknown) + 1);
static_assert(kNormalize.size() == static_cast<std::size_t>(Normalize::kUnknown) + 1);
static_assert(kTanh.size() == static_cast<std::size_t>(Tanh::kUnknown) + 1);
static_assert(kSubnormals.size() == static_cast<std::size_t>(Subnormals::kUnknown) + 1);
static_assert(kMaxPolicy.size() == static_cast<std::size_t>(MaxPolicy::kUnknown) + 1);
static_assert(kTileOrder.size() == static_cast<std::size_t>(TileOrder::kUnknown) + 1);

/// Calls visit(member name, enum field, names) for every enum field.
template <class A, class Visit>
void for_each_enum(A& arithmetic, Visit visit) {
  visit("qk", arithmetic.qk, kAccumulate);
  visit("pv", arithmetic.pv, kAccumulate);
  visit("score_store", arithmetic.score_store, kScoreStore);
  visit("scale_form", arithmetic.scale_form, kScaleForm);
  visit("exponential", arithmetic.exponential, kExponential);
  visit("row_sum_of", arithmetic.row_sum_of, kRowSumOf);
  visit("row_sum_tree", arithmetic.row_sum_tree, kRowSumTree);
  visit("normalize", arithmetic.normalize, kNormalize);
  visit("subnormals", arithmetic.subnormals, kSubnormals);
  visit("max_policy", arithmetic.max_policy, kMaxPolicy);
  visit("tanh", arithmetic.tanh, kTanh);
  visit("tile_order", arithmetic.tile_order, kTileOrder);
}

/// Members that documents of the first release lack: they keep their defaults there.
bool is_later(std::string_view member) { return member == "tanh"; }

}  // namespace

nlohmann::json to_json(const Arithmetic& arithmetic) {
  nlohmann::json out = nlohmann::json::object();
  for_each_enum(arithmetic, [&](const char* member, const auto& value, const auto& names) {
    out[member] = names.at(static_cast<std::size_t>(value));
  });
  out["p_format"] = arithmetic.p_known ? info(arithmetic.p_format).name : std::string_view("unknown");
  out["p_offset"] = arithmetic.p_offset;
  out["promote_n"] = arithmetic.promote_n;
  out["lazy_threshold"] = arithmetic.lazy_threshold;
  out["tile_n"] = arithmetic.tile_n;
  out["splits"] = arithmetic.splits;
  out["split_at"] = arithmetic.split_at;
  return out;
}

Arithmetic arithmetic_from_json(const JsonField& field) {
  Arithmetic arithmetic;
  for_each_enum(arithmetic, [&](const char* member, auto& value, const auto& names) {
    if (is_later(member) && !field.has(member)) return;
    const JsonField written = field[member];
    const std::string name = written.text();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) {
        value = static_cast<std::remove_reference_t<decltype(value)>>(i);
        return;
      }
    }
    std::string known;
    for (std::string_view n : names) known += (known.empty() ? "" : ", ") + std::string(n);
    written.fail("one of " + known);
  });
  const std::string p_format = field["p_format"].text();
  if (p_format != "unknown") {
    const auto format = format_from_name(p_format);
    if (!format) field["p_format"].fail("a format name or unknown");
    arithmetic.p_format = *format;
    arithmetic.p_known = true;
  }
  if (field.has("p_offset")) arithmetic.p_offset = field["p_offset"].small_integer();
  if (field.has("promote_n")) arithmetic.promote_n = field["promote_n"].small_integer();
  if (field.has("lazy_threshold")) arithmetic.lazy_threshold = field["lazy_threshold"].small_integer();
  arithmetic.tile_n = field["tile_n"].small_integer();
  arithmetic.splits = field["splits"].small_integer();
  if (field.has("split_at")) arithmetic.split_at = field["split_at"].small_integer();
  if (arithmetic.split_at < 0 || (arithmetic.split_at > 0 && arithmetic.splits != 2))
    field["split_at"].fail("0, or with 2 splits the position where the first ends");
  return arithmetic;
}

int unknown_fields(const Arithmetic& arithmetic) {
  int unknown = 0;
  for_each_enum(arithmetic, [&](const char*, const auto& value, const auto& names) {
    if (static_cast<std::size_t>(value) + 1 == names.size()) ++unknown;
  });
  return unknown + (arithmetic.p_known ? 0 : 1) + (arithmetic.tile_n == 0 ? 1 : 0) + (arithmetic.splits == 0 ? 1 : 0);
}

}  // namespace assay
