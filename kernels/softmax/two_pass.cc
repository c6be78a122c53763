// Safe softmax in two passes over a row: the maximum, then exponentials and their sum.
#include "kernels/fault.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"
#include "kernels/softmax/call.h"

namespace assay {
namespace {

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  if (p.steps > 0) return "knows the maximum before the first exponential: it has no states to show";
  return softmax_refuses(p, kInput);
}

Arithmetic declared(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  return {.scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kSequential,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kGlobal,
          .tile_order = TileOrder::kForward,
          .tile_n = static_cast<int>(p.n > 0 ? p.n : 1),  // the whole row is one tile
          .splits = 1};
}

/// Gives masked keys a finite logit, which it returns; -inf if there is none.
float fill_masked(SoftmaxInput& in) {
  constexpr float kFill = -1e4F;
  float filled = -kInfinity;
  for (std::size_t j = 0; j < in.x.size(); ++j)
    if (in.keep[j] == 0) in.x[j] = filled = kFill, in.keep[j] = 1;
  return filled;
}

/// t = fl(fl(scale x) + bias), y = fl(exp2(fl(fl(t - m) log2 e)) / l).
void softmax(const SoftmaxCall& call, std::int64_t row, SoftmaxInput& in, std::vector<float>& p) {
  const SoftmaxParams& params = call.params();
  const std::size_t n = in.x.size();
  const bool additive = params.data_mask == DataMask::kAdditive;
  float m = -kInfinity;
  for (std::size_t j = 0; j < n; ++j) {
    if (faulty(Fault::kScaleAfterFill) && in.keep[j] == 0) in.x[j] = -kInfinity, in.keep[j] = 1;
    in.x[j] *= params.scale;
    if (faulty(Fault::kScaledScoreRange)) in.x[j] = ranged(Format::kFp16, in.x[j]);
    if (additive) in.x[j] += in.bias[j];
    if (in.keep[j] != 0) m = max_keeping_nan(m, in.x[j]);
  }
  if (m == -kInfinity && !faulty(Fault::kEmptySumDivided)) return call.store_empty(row);
  if (faulty(Fault::kRowMaskFilled) && m > -kInfinity) {
    m = max_keeping_nan(m, fill_masked(in));
  }
  float l = 0.0F;
  p.assign(n, 0.0F);
  for (std::size_t j = 0; j < n; ++j) {
    if (in.keep[j] == 0) continue;
    const bool twice = faulty(Fault::kRowShiftRoundedTwice);
    const bool unshifted = faulty(Fault::kLastTileUnshifted) && j / 64 == (n - 1) / 64;
    p[j] = exp2_f32(twice ? fma_f32(in.x[j], kLog2e, -(m * kLog2e)) : (unshifted ? in.x[j] : in.x[j] - m) * kLog2e);
    l += p[j];
    if (faulty(Fault::kRowSumInBf16)) l = narrowed(Format::kBf16, l);
  }
  for (float& y : p) y /= l;
  call.store_y(row, p.data());
  call.store_lse(row, params.lse == LseBase::kTwo ? m * kLog2e + log2_f32(l) : m + log_f32(l));
}

RunFacts run(const Call& raw) {
  const SoftmaxCall call(raw);
  SoftmaxInput input;
  std::vector<float> p;
  for (std::int64_t row = 0; row < call.params().rows; ++row) {
    call.load(row, input);
    softmax(call, row, input, p);
  }
  return {"one row at a time"};
}

const RegisterKernel kFp32{{.name = "softmax_two_pass_fp32",
                            .op = "softmax",
                            .summary = "safe softmax in two passes, fp32 inputs",
                            .formats = {Format::kFp32},
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "softmax_two_pass_fp16",
                            .op = "softmax",
                            .summary = "safe softmax in two passes, fp16 inputs",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kBf16{{.name = "softmax_two_pass_bf16",
                            .op = "softmax",
                            .summary = "safe softmax in two passes, bf16 inputs",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
