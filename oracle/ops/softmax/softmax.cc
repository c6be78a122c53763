// Softmax's parameters: parse, check, normalise.
#include "oracle/ops/softmax/softmax.h"

#include "oracle/op_parameters.h"
#include "oracle/ops/attention/names.h"
#include "oracle/ops/softmax/layouts.h"
#include "oracle/param_reader.h"

namespace assay {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::array<std::string_view, 3> kMasks{"none", "bool", "additive"};

}  // namespace

SoftmaxParams softmax_params(const Params& params) {
  const ParamReader in("softmax", kSoftmaxParams, params);
  SoftmaxParams p;
  p.rows = in.integer("rows", 0, kMaxExtent);
  p.n = in.integer("n", 0, kMaxExtent);
  p.input = in.float_format("dtype", Format::kBf16);
  p.output = in.float_format("out", p.input);
  p.scale = in.fp32("scale");
  p.data_mask = in.one_of<DataMask>("mask", kMasks);
  p.steps = in.integer("steps", 0, kMaxExtent);
  p.lse = in.one_of<LseBase>("lse", names::kLseBase);
  p.empty_output = in.one_of<EmptyOutput>("empty", names::kEmptyOutput);
  p.empty_lse = in.one_of<EmptyLse>("empty_lse", names::kEmptyLse);
  p.pad = in.integer("pad", 0, kMaxExtent);
  p.offset = in.integer("offset", 0, kMaxExtent);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 32;
  if (p.rows > 0 && p.n + p.pad > kMaxElements / p.rows)
    in.bad("rows", "a tensor of this case would pass 2^32 elements");
  return p;
}

namespace {

Params complete_softmax(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  Params all;
  const auto number = [&](std::string_view key, std::int64_t value) { all.set(key, std::to_string(value)); };
  number("rows", p.rows);
  number("n", p.n);
  all.set("dtype", std::string(info(p.input).name));
  all.set("out", std::string(info(p.output).name));
  all.set("scale", shortest_text(p.scale));
  all.set("mask", std::string(kMasks.at(static_cast<std::size_t>(p.data_mask))));
  number("steps", p.steps);
  all.set("lse", std::string(names::kLseBase.at(static_cast<std::size_t>(p.lse))));
  all.set("empty", std::string(names::kEmptyOutput.at(static_cast<std::size_t>(p.empty_output))));
  all.set("empty_lse", std::string(names::kEmptyLse.at(static_cast<std::size_t>(p.empty_lse))));
  number("pad", p.pad);
  number("offset", p.offset);
  return all;
}

const RegisterOpParameters kParameters({
    .op = "softmax",
    .complete = complete_softmax,
    .named = {{"out", {"fp32", "fp16", "bf16"}},
              {"mask", {kMasks.begin(), kMasks.end()}},
              {"lse", {names::kLseBase.begin(), names::kLseBase.end()}},
              {"empty", {names::kEmptyOutput.begin(), names::kEmptyOutput.end()}},
              {"empty_lse", {names::kEmptyLse.begin(), names::kEmptyLse.end()}}},
    .format_key = "dtype",
    .for_the_judge = {},
});

}  // namespace

Params canonical_softmax(const Params& params) {
  Params all = complete_softmax(params);
  if (*all.find("out") == *all.find("dtype")) all.erase("out");
  return without_defaults(kSoftmaxParams, all);
}

}  // namespace assay
