// Device code of the softmax in two passes: one block per row, tree reductions in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/softmax/cuda/two_pass.cuh"

namespace assay {
namespace {

constexpr int kThreads = 128;
constexpr float kLog2e = 0x1.715476p+0F;

__device__ float widen(float x) { return x; }
__device__ float widen(__half x) { return __half2float(x); }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

__device__ void store(float* at, float value) { *at = value; }
__device__ void store(__half* at, float value) { *at = __float2half_rn(value); }
__device__ void store(__nv_bfloat16* at, float value) { *at = __float2bfloat16_rn(value); }

template <class T>
__device__ T& element(const DeviceRows<T>& rows, std::int64_t row, std::int64_t column) {
  return rows.at[row * rows.row + column * rows.column];
}

/// t = fl(fl(scale x) + bias); -inf where the mask excludes the key.
template <class Call>
__device__ float logit(const Call& call, std::int64_t row, std::int64_t j) {
  if (call.keep.at != nullptr && element(call.keep, row, j) == 0) return -INFINITY;
  const float t = widen(element(call.x, row, j)) * call.scale;
  return call.bias.at != nullptr ? t + element(call.bias, row, j) : t;
}

template <class Call>
__device__ bool excluded(const Call& call, std::int64_t row, std::int64_t j) {
  return call.keep.at != nullptr && element(call.keep, row, j) == 0;
}

__device__ float max_keeping_nan(float a, float b) { return a != a || a > b ? a : b; }

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Maximum {
  __device__ float operator()(float a, float b) const { return max_keeping_nan(a, b); }
};

/// Combines one value per thread; every thread gets the result.
template <bool kBarriers, class Combine>
__device__ float reduce(float value, Combine combine, float* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the last reduction's readers are through
  shared[thread] = value;
  if (kBarriers) __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = combine(shared[thread], shared[thread + half]);
    if (kBarriers) __syncthreads();
  }
  __syncthreads();
  return shared[0];
}

template <DeviceSoftmaxFault kFault, class Call>
__global__ void __launch_bounds__(kThreads) row_statistics(const Call call) {
  __shared__ float shared[kThreads];
  const std::int64_t row = blockIdx.x;
  float m = -INFINITY;
  for (std::int64_t j = threadIdx.x; j < call.n; j += kThreads) m = max_keeping_nan(m, logit(call, row, j));
  m = reduce<true>(m, Maximum{}, shared);
  float l = 0.0F;
  if (m != -INFINITY)
    for (std::int64_t j = threadIdx.x; j < call.n; j += kThreads)
      if (!excluded(call, row, j)) l += exp2f((logit(call, row, j) - m) * kLog2e);
  l = reduce<kFault != DeviceSoftmaxFault::kBarrierMissing>(l, Sum{}, shared);
  if (threadIdx.x != 0) return;
  call.statistics[2 * row] = m;
  if (kFault == DeviceSoftmaxFault::kUnsetWorkspace)
    call.statistics[2 * row + 1] += l;
  else
    call.statistics[2 * row + 1] = l;
}

template <DeviceSoftmaxFault kFault, class Call>
__global__ void __launch_bounds__(kThreads) normalise(const Call call) {
  const std::int64_t row = blockIdx.x;
  const float m = call.statistics[2 * row], l = call.statistics[2 * row + 1];
  const bool empty = m == -INFINITY;
  for (std::int64_t j = threadIdx.x; j < call.n; j += kThreads) {
    float y = empty ? call.empty_y : 0.0F;
    if (!empty && !excluded(call, row, j)) y = exp2f((logit(call, row, j) - m) * kLog2e) / l;
    store(&element(call.y, row, j), y);
  }
  if (threadIdx.x != 0) return;
  if (kFault == DeviceSoftmaxFault::kOverrun && row == call.rows - 1) store(&element(call.y, row, call.n), 1.0F);
  if (call.lse.at == nullptr) return;
  const float lse = call.base_two ? m * kLog2e + log2f(l) : m + logf(l);
  element(call.lse, row, 0) = empty ? call.empty_lse : lse;
}

}  // namespace

template <class Element, class Output>
void launch_row_statistics(const DeviceSoftmax<Element, Output>& call, DeviceSoftmaxFault fault, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (fault == DeviceSoftmaxFault::kBarrierMissing)
    row_statistics<DeviceSoftmaxFault::kBarrierMissing><<<blocks, kThreads, 0, stream>>>(call);
  else if (fault == DeviceSoftmaxFault::kUnsetWorkspace)
    row_statistics<DeviceSoftmaxFault::kUnsetWorkspace><<<blocks, kThreads, 0, stream>>>(call);
  else
    row_statistics<DeviceSoftmaxFault::kNone><<<blocks, kThreads, 0, stream>>>(call);
}

template <class Element, class Output>
void launch_normalise(const DeviceSoftmax<Element, Output>& call, DeviceSoftmaxFault fault, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (fault == DeviceSoftmaxFault::kOverrun)
    normalise<DeviceSoftmaxFault::kOverrun><<<blocks, kThreads, 0, stream>>>(call);
  else
    normalise<DeviceSoftmaxFault::kNone><<<blocks, kThreads, 0, stream>>>(call);
}

#define ASSAY_INSTANTIATE(Element, Output)                                                                      \
  template void launch_row_statistics(const DeviceSoftmax<Element, Output>&, DeviceSoftmaxFault, cudaStream_t); \
  template void launch_normalise(const DeviceSoftmax<Element, Output>&, DeviceSoftmaxFault, cudaStream_t);
#define ASSAY_INSTANTIATE_OUTPUTS(Element) \
  ASSAY_INSTANTIATE(Element, float)        \
  ASSAY_INSTANTIATE(Element, __half)       \
  ASSAY_INSTANTIATE(Element, __nv_bfloat16)
ASSAY_INSTANTIATE_OUTPUTS(float)
ASSAY_INSTANTIATE_OUTPUTS(__half)
ASSAY_INSTANTIATE_OUTPUTS(__nv_bfloat16)

}  // namespace assay
