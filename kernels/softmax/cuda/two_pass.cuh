// The device softmax in two kernels: statistics of each row, then the outputs; what the launches need to know.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay {

/// Rows of a matrix in device memory; strides in elements.
template <class T>
struct DeviceRows {
  T* at = nullptr;  ///< element [0, 0]; null if there is none
  std::int64_t row = 0, column = 0;
};

/// One call. `Element` and `Output` are float, __half or __nv_bfloat16.
template <class Element, class Output>
struct DeviceSoftmax {
  std::int64_t rows = 0, n = 0;
  float scale = 1;
  DeviceRows<const Element> x;
  DeviceRows<const std::uint8_t> keep;  ///< mask=bool
  DeviceRows<const float> bias;         ///< mask=additive
  DeviceRows<Output> y;
  DeviceRows<float> lse;  ///< one column
  bool base_two = false;  ///< the LSE's logarithm
  float empty_y = 0, empty_lse = 0;
  float* statistics = nullptr;  ///< workspace [rows, 2]: maximum and row sum
};

/// Faults that the mutant program plants; kNone in every other program.
enum class DeviceSoftmaxFault : std::uint8_t {
  kNone,
  kOverrun,         ///< the last row writes one element more
  kUnsetWorkspace,  ///< the row sum is added to what stands in the workspace
  kBarrierMissing,  ///< the reduction of the row sum has no barriers between its steps
};

template <class Element, class Output>
void launch_row_statistics(const DeviceSoftmax<Element, Output>& call, DeviceSoftmaxFault fault, cudaStream_t stream);
template <class Element, class Output>
void launch_normalise(const DeviceSoftmax<Element, Output>& call, DeviceSoftmaxFault fault, cudaStream_t stream);

}  // namespace assay
