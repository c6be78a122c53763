// Merge's parameters: parse, check, normalise.
#include "oracle/ops/merge/merge.h"

#include <algorithm>

#include "oracle/op_parameters.h"
#include "oracle/ops/attention/names.h"
#include "oracle/ops/merge/layouts.h"
#include "oracle/param_reader.h"

namespace assay {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::array<std::string_view, 2> kBases{"e", "2"};
constexpr std::array<std::string_view, 2> kAnswers{"no", "yes"};
constexpr std::array<std::string_view, 2> kEmptyParts{"-inf", "either"};
constexpr std::array<std::string_view, 2> kEmptyOutputs{"zero", "nan"};
constexpr std::array<std::string_view, 2> kLayouts{"parts", "rows"};

std::string text(std::string_view name) { return std::string(name); }

}  // namespace

MergeParams merge_params(const Params& params) {
  const ParamReader in("merge", kMergeParams, params);
  MergeParams p;
  p.parts = in.integer("parts", 0, 65536);
  p.rows = in.integer("rows", 0, kMaxExtent);
  p.dim_v = in.integer("dv", 1, kMaxExtent);
  p.input = in.float_format("dtype", Format::kBf16);
  p.output = in.float_format("out", p.input);
  p.base = in.one_of<int>("base", kBases) == 0 ? LseBase::kNatural : LseBase::kTwo;
  p.has_lse = in.one_of<int>("lse", kAnswers) == 1;
  p.plus_inf_is_empty = in.one_of<int>("empty_part", kEmptyParts) == 1;
  p.empty_output = in.one_of<EmptyOutput>("empty", kEmptyOutputs);
  p.empty_lse = in.one_of<EmptyLse>("empty_lse", names::kEmptyLse);
  p.masked_nonfinite = in.one_of<MaskedNonfinite>("masked_nonfinite", names::kMaskedNonfinite);
  p.rows_first = in.one_of<int>("layout", kLayouts) == 1;
  p.pad = in.integer("pad", 0, kMaxExtent);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 32;
  const std::int64_t vectors = p.rows * std::max<std::int64_t>(p.parts, 1);  // below 2^40
  if (vectors > 0 && p.dim_v + p.pad > kMaxElements / vectors)
    in.bad("rows", "a tensor of this case would pass 2^32 elements");
  return p;
}

namespace {

Params complete_merge(const Params& params) {
  const MergeParams p = merge_params(params);
  Params all;
  all.set("parts", std::to_string(p.parts));
  all.set("rows", std::to_string(p.rows));
  all.set("dv", std::to_string(p.dim_v));
  all.set("dtype", text(info(p.input).name));
  all.set("out", text(info(p.output).name));
  all.set("base", p.base == LseBase::kTwo ? "2" : "e");
  all.set("lse", text(kAnswers.at(p.has_lse ? 1 : 0)));
  all.set("empty_part", text(kEmptyParts.at(p.plus_inf_is_empty ? 1 : 0)));
  all.set("empty", text(kEmptyOutputs.at(static_cast<std::size_t>(p.empty_output))));
  all.set("empty_lse", text(names::kEmptyLse.at(static_cast<std::size_t>(p.empty_lse))));
  all.set("masked_nonfinite", text(names::kMaskedNonfinite.at(static_cast<std::size_t>(p.masked_nonfinite))));
  all.set("layout", text(kLayouts.at(p.rows_first ? 1 : 0)));
  all.set("pad", std::to_string(p.pad));
  return all;
}

const RegisterOpParameters kParameters({
    .op = "merge",
    .complete = complete_merge,
    .named = {{"out", {"fp32", "fp16", "bf16"}},
              {"base", {kBases.begin(), kBases.end()}},
              {"lse", {kAnswers.begin(), kAnswers.end()}},
              {"empty_part", {kEmptyParts.begin(), kEmptyParts.end()}},
              {"empty", {kEmptyOutputs.begin(), kEmptyOutputs.end()}},
              {"empty_lse", {names::kEmptyLse.begin(), names::kEmptyLse.end()}},
              {"masked_nonfinite", {names::kMaskedNonfinite.begin(), names::kMaskedNonfinite.end()}},
              {"layout", {kLayouts.begin(), kLayouts.end()}}},
    .format_key = "dtype",
    .for_the_judge = {},
});

}  // namespace

Params canonical_merge(const Params& params) {
  Params all = complete_merge(params);
  if (*all.find("out") == *all.find("dtype")) all.erase("out");
  return without_defaults(kMergeParams, all);
}

}  // namespace assay
