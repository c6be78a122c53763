// Merge one part after the other into a normalised state (FlashInfer's merge_state).
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
          .normalize = Normalize::kEveryStep,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kEveryTile,
          .tile_order = TileOrder::kForward,
          .splits = static_cast<int>(p.parts)};
}

/// m = max(lse, part), a = exp(lse - m), b = exp(part - m), o = (a / (a + b)) o + (b / (a + b)) o_part, lse = m + ln(a
/// + b).
void merge(const MergeCall& call, std::int64_t row, bool stale, std::vector<float>& o) {
  const MergeParams& p = call.params();
  const bool two = p.base == LseBase::kTwo;
  const auto exponential = [&](float x) { return exp2_f32(two ? x : x * kLog2e); };
  const bool guarded = !faulty(Fault::kMergeEmptyUnguarded);
  o.assign(static_cast<std::size_t>(p.dim_v), 0.0F);
  float state = -kInfinity;
  bool any = false;
  for (std::int64_t s = 0; s < p.parts; ++s) {
    const float lse = call.lse(s, row);
    if (guarded && call.is_empty(lse)) continue;
    if (guarded && !any) {
      for (std::int64_t c = 0; c < p.dim_v; ++c) o[static_cast<std::size_t>(c)] = call.o(s, row, c);
      state = lse;
      any = true;
      if (lse < kInfinity) continue;
      // NaN, or +inf as data: a step with itself makes o NaN too.
    }
    const float m = max_keeping_nan(state, lse);
    const float of_part = stale && s > 0 ? call.lse(s - 1, row) : lse;
    const float a = exponential(state - m), b = exponential(of_part - m);
    const float total = a + b, share = faulty(Fault::kLastPartOnly) ? 0.0F : a / total;
    const float part_share = faulty(Fault::kLastPartOnly) ? 1.0F : b / total;
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
      float& value = o[static_cast<std::size_t>(c)];
      value = share * value + part_share * call.o(s, row, c);
      if (faulty(Fault::kStateInOutputFormat)) value = narrowed(p.output, value);
    }
    state = m + (two ? log2_f32(total) : log_f32(total));
    any = true;
  }
  if (!any) return call.store_empty(row);
  call.store(row, o.data(), state);
}

RunFacts run(const Call& raw) {
  const MergeCall call(raw);
  std::vector<float> o;
  static int runs = 0;
  const bool stale = faulty(Fault::kStalePartLse) && ++runs % 2 == 0;  // a planted fault
  for (std::int64_t row = 0; row < call.params().rows; ++row) merge(call, row, stale, o);
  return {std::to_string(call.params().parts) + " parts, one after the other"};
}

const RegisterKernel kFp32{{.name = "merge_pairwise_fp32",
                            .op = "merge",
                            .summary = "merge one part after the other into a normalised state, fp32 parts",
                            .formats = {Format::kFp32},
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "merge_pairwise_fp16",
                            .op = "merge",
                            .summary = "merge one part after the other into a normalised state, fp16 parts",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kBf16{{.name = "merge_pairwise_bf16",
                            .op = "merge",
                            .summary = "merge one part after the other into a normalised state, bf16 parts",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay
