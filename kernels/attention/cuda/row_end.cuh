// The end of a row on the device: sink, LSE, empty rows; kernels/attention/row_end.cc step for step.
#pragma once

#include "kernels/attention/cuda/device_fault.cuh"
#include "kernels/attention/cuda/forward_params.h"
#include "kernels/attention/cuda/scalar.cuh"

namespace assay::cuda {

/// A row whose keys gave o = sum e^(x - max) v becomes o * keep / sum.
struct RowEnd {
  float keep = 0.0F;  ///< below 1 where the sink is the largest logit
  float sum = 1.0F;
  float lse = 0.0F;
  bool empty = false;  ///< O holds `fill` in every channel
  float fill = 0.0F;
};

/// `max` in natural units and `max_log2` of a row whose sum of e^(x - max) is `sum`.
__device__ inline RowEnd end_row(const ForwardParams& p, float max, float max_log2, float sum, float sink) {
  RowEnd end{.keep = 1.0F, .sum = sum};
  float lse_max = max, lse_max_log2 = max_log2, lse_sum = sum;
  if (p.sink_kind != Sink::kNone) {
    const bool above = sink > max;
    end.keep = above ? exp2_kept(__fmul_rn(__fsub_rn(max, sink), kLog2e)) : 1.0F;
    end.sum = __fadd_rn(__fmul_rn(sum, end.keep), above ? 1.0F : exp2_kept(__fmul_rn(__fsub_rn(sink, max), kLog2e)));
    if (p.sink_kind == Sink::kInLse) {
      lse_sum = end.sum;
      if (above) {
        lse_max = sink;
        lse_max_log2 = __fmul_rn(sink, kLog2e);
      }
    }
  }
  end.lse = p.lse_base == LseBase::kTwo     ? __fadd_rn(lse_max_log2, log2f(lse_sum))
            : faulty(DeviceFault::kLseBase) ? __fadd_rn(lse_max, log2f(lse_sum))
                                            : __fadd_rn(lse_max, logf(lse_sum));
  return end;
}

/// A row without an admissible key, or whose logits are all -inf. Where O is the mean of V it is NaN here.
__device__ inline RowEnd end_empty_row(const ForwardParams& p, float sink) {
  const float nan = __int_as_float(0x7fffffff);
  RowEnd end{.empty = true, .fill = p.empty_output == EmptyOutput::kZero ? 0.0F : nan};
  end.lse = p.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity;
  if (p.sink_kind == Sink::kNone || sink == -kInfinity) return end;
  end.fill = sink != sink ? nan : 0.0F;
  if (p.sink_kind == Sink::kInLse) end.lse = p.lse_base == LseBase::kTwo ? __fmul_rn(sink, kLog2e) : sink;
  return end;
}

/// Rows without an admissible key hold the mean of V over all keys of the sequence.
__device__ inline bool takes_mean(const ForwardParams& p, float sink) {
  return p.empty_output == EmptyOutput::kMean && (p.sink_kind == Sink::kNone || sink == -kInfinity);
}

}  // namespace assay::cuda
