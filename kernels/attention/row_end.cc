// Sinks, LSE and empty rows.
#include "kernels/attention/row_end.h"

#include <limits>

#include "kernels/coarse.h"
#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {

RowSink sink_of(const AttentionCall& call, std::int64_t head) {
  const float logit = call.rules().sink(head);
  return {call.params().sink, faulty(Fault::kSinkScaled) ? logit * call.params().scale : logit};
}

RowEnd end_row(float max, float max_log2, float sum, RowSink sink, LseBase base) {
  RowEnd end{.keep = 1.0F, .sum = sum, .lse = 0.0F};
  float lse_max = max, lse_max_log2 = max_log2, lse_sum = sum;
  if (sink.kind != Sink::kNone) {
    const bool above = sink.logit > max;
    end.keep = above ? exp2_f32((max - sink.logit) * kLog2e) : 1.0F;
    end.sum = sum * end.keep + (above ? 1.0F : exp2_f32((sink.logit - max) * kLog2e));
    if (sink.kind == Sink::kInLse) {
      lse_sum = end.sum;
      if (above) {
        lse_max = sink.logit;
        lse_max_log2 = sink.logit * kLog2e;
      }
    }
  }
  if (faulty(Fault::kLogQuadratic)) {
    const float log2 = log2_quadratic_f32(lse_sum);
    end.lse = base == LseBase::kTwo ? lse_max_log2 + log2 : lse_max + log2 * 0x1.62e43p-1F;
    return end;
  }
  end.lse = base == LseBase::kTwo ? lse_max_log2 + log2_f32(lse_sum) : lse_max + log_f32(lse_sum);
  return end;
}

EmptyRow empty_row(const AttentionParams& params, RowSink sink) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EmptyRow row{.mean = params.empty_output == EmptyOutput::kMean,
               .o = params.empty_output == EmptyOutput::kNan ? kNan : 0.0F,
               .lse = params.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity};
  if (faulty(Fault::kEmptyLsePlusInf)) row.lse = -row.lse;
  if (sink.kind == Sink::kNone || sink.logit == -kInfinity) return row;
  row.mean = false;
  row.o = sink.logit != sink.logit ? kNan : 0.0F;
  if (sink.kind == Sink::kInLse) row.lse = params.lse == LseBase::kTwo ? sink.logit * kLog2e : sink.logit;
  return row;
}

}  // namespace assay
