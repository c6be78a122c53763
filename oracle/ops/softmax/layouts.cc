// Where softmax's inputs and outputs lie, and the coverage cells of a case.
#include "oracle/ops/softmax/layouts.h"

#include "oracle/row_major.h"

namespace assay {

std::vector<InputSpec> softmax_inputs(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  InputSpec x;
  x.layout = row_major("x", p.input, {p.rows, p.n}, p.pad, p.offset);
  x.axes = "qk";
  x.default_source = "normal@1";
  std::vector<InputSpec> specs{x};
  if (p.data_mask != DataMask::kNone) {
    const bool boolean = p.data_mask == DataMask::kBool;
    InputSpec mask;
    mask.layout = row_major("mask", boolean ? Format::kUint8 : Format::kFp32, {p.rows, p.n});
    mask.axes = "qk";
    mask.default_source = boolean ? "keep(0.75)@4" : "bias(1)@4";
    specs.push_back(mask);
  }
  return specs;
}

std::vector<TensorLayout> softmax_outputs(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  std::vector<TensorLayout> outputs{row_major("y", p.output, {p.rows, p.n}, p.pad, p.offset)};
  if (p.lse != LseBase::kNone) outputs.push_back(row_major("lse", Format::kFp32, {p.rows}));
  if (p.steps > 0)
    for (const char* role : {"m", "l"}) outputs.push_back(row_major(role, Format::kFp32, {p.rows, p.step_count()}));
  return outputs;
}

Format softmax_input_format(const Params& params) { return softmax_params(params).input; }

std::map<std::string, std::string> softmax_cells(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  const std::int64_t residue = p.n % 64, t = p.steps;
  std::string layout = p.pad > 0 ? "pad" : "";
  if (p.offset > 0) layout += layout.empty() ? "offset" : "+offset";
  return {{"mask", p.data_mask == DataMask::kBool       ? "bool"
                   : p.data_mask == DataMask::kAdditive ? "additive"
                                                        : "none"},
          {"steps", t == 0    ? "none"
                    : t == 1  ? "1"
                    : t < 16  ? "2..15"
                    : t <= 64 ? "16..64"
                              : "65.."},
          {"layout", layout.empty() ? "plain" : layout},
          {"dtype", std::string(info(p.input).name)},
          {"residue", residue == 0    ? "0"
                      : residue == 1  ? "1"
                      : residue == 63 ? "63"
                      : residue < 32  ? "2..31"
                                      : "32..62"},
          {"length", p.n >= 1024  ? ">=1024"
                     : p.n >= 128 ? "128..1023"
                     : p.n >= 16  ? "16..127"
                                  : "<16"}};
}

}  // namespace assay
