// How a score becomes the number x that stands for a logit: sign, scale, soft cap, ALiBi; what the host twin's
// LogitForm and RowRules::adjust do.
#pragma once

#include "kernels/attention/cuda/forward_params.h"
#include "kernels/attention/cuda/scalar.cuh"
#include "kernels/attention/cuda/sequence.cuh"

namespace assay::cuda {

/// Folded: x = s with the sign of the scale, and P = exp2(fma(x, c, -fl(m c))). On score: x = fl(s scale), soft-capped
/// and biased, and P = exp2(fl(fl(x - m) log2 e)). Not kGeneral: folded, with a positive scale.
template <bool kGeneral>
class LogitRule {
 public:
  __device__ LogitRule(const ForwardParams& p, const RowBand& band, int batch, int head) {
    const float size = faulty(DeviceFault::kScaleOff) ? fabsf(p.scale) * 1.001F : fabsf(p.scale);
    // For a scale of 0 every x is 0, whatever c; but c must leave masked keys, -inf, where they are.
    c_ = size == 0.0F ? 1.0F : static_cast<float>(static_cast<double>(size) * 0x1.71547652b82fep+0);
    scale_ = size;
    if constexpr (kGeneral) {
      on_score_ = p.softcap > 0.0F || p.alibi != Alibi::kNone;
      const float sign = p.scale < 0.0F ? -1.0F : p.scale > 0.0F ? 1.0F : 0.0F;
      factor_ = on_score_ ? p.scale : sign;
      cap_ = p.softcap;
      alibi_ = p.alibi;
      if (alibi_ != Alibi::kNone) slope_ = p.slopes[batch * p.slope_batch + head];
      last_ = band.kv_len() - 1;
    }
  }

  // x of a score, step by step; the cap and the bias only where the call has one.
  __device__ __forceinline__ float scaled(float score) const { return __fmul_rn(score, factor_); }
  __device__ __forceinline__ bool capped() const { return cap_ > 0.0F; }
  __device__ __forceinline__ float capped(float x) const { return __fmul_rn(cap_, tanhf(__fdiv_rn(x, cap_))); }
  __device__ __forceinline__ bool biased() const { return alibi_ != Alibi::kNone; }
  /// `ahead`: the key minus the row's anchor.
  __device__ __forceinline__ float biased(float x, int ahead) const {
    const int distance = alibi_ == Alibi::kDistance ? -abs(ahead) : ahead;
    return __fadd_rn(x, __fmul_rn(slope_, static_cast<float>(distance)));
  }
  /// The key that ALiBi counts a row's distances from.
  __device__ __forceinline__ int anchor(int query, int position) const {
    switch (alibi_) {
      case Alibi::kDistance: return position;
      case Alibi::kDiagonal: return query;
      case Alibi::kLast: return last_;
      default: return 0;
    }
  }

  /// The row's constant in `exponent`; `max` is finite or what makes NaN of it.
  __device__ __forceinline__ float shift(float max) const { return on_score() ? max : -__fmul_rn(max, c_); }
  /// log2 P.
  __device__ __forceinline__ float exponent(float x, float shift) const {
    return on_score() ? __fmul_rn(__fsub_rn(x, shift), kLog2e) : __fmaf_rn(x, c_, shift);
  }
  /// Of a difference of two x, in the exponent of 2.
  __device__ __forceinline__ float unit() const { return on_score() ? kLog2e : c_; }
  __device__ __forceinline__ float natural(float x) const { return on_score() ? x : __fmul_rn(x, scale_); }

 private:
  __device__ __forceinline__ bool on_score() const { return kGeneral && on_score_; }

  float c_, scale_, factor_ = 1.0F, cap_ = 0.0F, slope_ = 0.0F;
  bool on_score_ = false;
  Alibi alibi_ = Alibi::kNone;
  int last_ = 0;
};

}  // namespace assay::cuda
