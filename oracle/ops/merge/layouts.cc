// Where merge's inputs and outputs lie, and the coverage cells of a case.
#include "oracle/ops/merge/layouts.h"

#include "oracle/row_major.h"

namespace assay {
namespace {

/// [parts, rows, ...] whose memory may have rows outermost.
TensorLayout by_part(const MergeParams& p, TensorLayout t) {
  if (!p.rows_first) return t;
  const std::int64_t inner = t.shape.size() == 3 ? t.strides[1] : 1;
  t.strides[0] = inner;
  t.strides[1] = inner * p.parts;
  return t;
}

}  // namespace

std::vector<InputSpec> merge_inputs(const Params& params) {
  const MergeParams p = merge_params(params);
  InputSpec o, lse;  // parts are positions, rows are heads: the parts of a row are what recipes relate to each other
  o.layout = by_part(p, row_major("o_parts", p.input, {p.parts, p.rows, p.dim_v}, p.pad));
  o.axes = "shc";
  o.default_source = "normal@1";
  lse.layout = by_part(p, row_major("lse_parts", Format::kFp32, {p.parts, p.rows}));
  lse.axes = "sh";
  lse.default_source = "normal@2";
  return {o, lse};
}

std::vector<TensorLayout> merge_outputs(const Params& params) {
  const MergeParams p = merge_params(params);
  std::vector<TensorLayout> outputs{row_major("o", p.output, {p.rows, p.dim_v}, p.pad)};
  if (p.has_lse) outputs.push_back(row_major("lse", Format::kFp32, {p.rows}));
  return outputs;
}

Format merge_input_format(const Params& params) { return merge_params(params).input; }

std::map<std::string, std::string> merge_cells(const Params& params) {
  const MergeParams p = merge_params(params);
  std::string layout = p.rows_first ? "rows" : "parts";
  if (p.pad > 0) layout += "+pad";
  return {{"parts", p.parts <= 2    ? std::to_string(p.parts)
                    : p.parts <= 8  ? "3..8"
                    : p.parts <= 64 ? "9..64"
                                    : "65.."},
          {"base", p.base == LseBase::kTwo ? "2" : "e"},
          {"empty_part", p.plus_inf_is_empty ? "either" : "-inf"},
          {"layout", layout},
          {"dtype", std::string(info(p.input).name)},
          {"length", p.rows >= 128  ? ">=128"
                     : p.rows >= 16 ? "16..127"
                                    : "<16"}};
}

}  // namespace assay
