// Merge in two passes over the parts: the largest LSE, then normalised weights (FlashAttention's combine kernel).
#include "kernels/fault.h"
#include "kernels/merge/call.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  return merge_refuses(params, kInput);
}

Arithmetic declared(const Params& params) {
  const MergeParams p = merge_params(params);
  return {.scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .row_sum_tree = RowSumTree::kSequential,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kGlobal,
          .tile_order = TileOrder::kForward,
          .splits = static_cast<int>(p.parts)};
}

/// w_s = exp2(fl(fl(lse_s - m) log2 e)), o = sum (w_s / sum w) o_s, lse = m + ln sum w; base two: without log2 e. Empty
/// parts are not read.
void merge(const MergeCall& call, std::int64_t row, std::vector<float>& weights, std::vector<float>& o) {
  const MergeParams& p = call.params();
  const bool two = (p.base == LseBase::kTwo) != faulty(Fault::kMergeOtherBase);
  float m = -kInfinity;
  bool any = false;
  for (std::int64_t s = 0; s < p.parts; ++s) {
    const float lse = call.lse(s, row);
    if (call.is_empty(lse)) continue;
    any = true;
    m = max_keeping_nan(m, lse);
  }
  if (!any && !faulty(Fault::kEmptyPartsWeighted)) return call.store_empty(row);
  if (faulty(Fault::kMergeWithoutMax)) m = 0.0F;
  if (faulty(Fault::kMergeMaximumFloor)) m = max_keeping_nan(m, -1e4F);
  float sum = 0.0F;
  weights.assign(static_cast<std::size_t>(p.parts), 0.0F);
  for (std::int64_t s = 0; s < p.parts; ++s) {
    const float lse = call.lse(s, row);
    if (any && call.is_empty(lse)) continue;
    const float y = two ? lse - m : (lse - m) * kLog2e;
    const float weight = faulty(Fault::kMergeCubic) ? exp2_cubic_f32(y) : exp2_f32(y);
    weights[static_cast<std::size_t>(s)] = weight;
    sum += weight;
  }
  const auto dv = static_cast<std::size_t>(p.dim_v);
  if (!faulty(Fault::kStaleAccumulator) || row > 0 || p.rows == 1 || o.size() != dv) o.assign(dv, 0.0F);
  if (sum == 0.0F && faulty(Fault::kMergeMaximumFloor)) sum = 1.0F;
  for (std::int64_t s = 0; s < p.parts; ++s) {
    if (any && call.is_empty(call.lse(s, row)) && !faulty(Fault::kEmptyPartMultiplied)) continue;
    const float share = weights[static_cast<std::size_t>(s)] / sum;
    for (std::int64_t c = 0; c < p.dim_v; ++c) o[static_cast<std::size_t>(c)] += share * call.o(s, row, c);
  }
  if (faulty(Fault::kMergedSumRange))
    for (float& x : o)
      if (const float before = ranged(Format::kFp16, x * sum); before == kInfinity || before == -kInfinity) x = before;
  call.store(row, o.data(), m + (two ? log2_f32(sum) : log_f32(sum)));
}

RunFacts run(const Call& raw) {
  const MergeCall call(raw);
  std::vector<float> weights, o;
  static std::vector<float> kept;
  if (faulty(Fault::kStaleAccumulator)) o = kept;
  for (std::int64_t row = 0; row < call.params().rows; ++row) merge(call, row, weights, o);
  if (faulty(Fault::kStaleAccumulator)) kept = o;
  return {std::to_string(call.params().parts) + " parts"};
}

const RegisterKernel kFp32{{.name = "merge_two_pass_fp32",
                            .op = "merge",
                            .summary = "merge in two passes, weights normalised first, fp32 parts",
                            .formats = {Format::kFp32},
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "merge_two_pass_fp16",
                            .op = "merge",
                            .summary = "merge in two passes, weights normalised first, fp16 parts",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kBf16{{.name = "merge_two_pass_bf16",
                            .op = "merge",
                            .summary = "merge in two passes, weights normalised first, bf16 parts",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
