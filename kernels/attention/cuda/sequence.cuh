// Lengths of one sequence and the keys that its rows may see.
#pragma once

#include <cstdint>

#include "kernels/attention/cuda/device_fault.cuh"
#include "kernels/attention/cuda/forward_params.h"

namespace assay::cuda {

struct Span {
  std::int64_t start;  ///< first token where packed, else 0
  int len;
};

__device__ __forceinline__ Span span_of(const Lengths& lengths, int batch) {
  if (lengths.lens == nullptr) return {0, lengths.longest};
  if (!lengths.packed) return {0, lengths.lens[batch]};
  return {lengths.lens[batch], lengths.lens[batch + 1] - lengths.lens[batch]};
}

/// The keys of query i are [first(i), end(i)), perhaps none; both ends never fall as i rises.
class RowBand {
 public:
  __device__ RowBand(const ForwardParams& p, int q_len, int kv_len)
      : offset_(p.align == Align::kTopLeft ? 0 : kv_len - q_len), kv_len_(kv_len), band_(p.band) {
    if (faulty(DeviceFault::kMaskShifted) && band_.end < BandLimits::kUnbounded) ++band_.end;
    if (faulty(DeviceFault::kLastKeyDropped) && kv_len_ > 1) --kv_len_;
  }

  __device__ __forceinline__ int first(int query) const { return max(0, position(query) + band_.first); }
  __device__ __forceinline__ int end(int query) const { return min(kv_len_, position(query) + band_.end); }
  /// The key that stands above the query on the diagonal.
  __device__ __forceinline__ int position(int query) const { return query + offset_; }
  __device__ __forceinline__ int kv_len() const { return kv_len_; }

 private:
  int offset_, kv_len_;
  BandLimits band_;
};

}  // namespace assay::cuda
