// Softmax on the GPU in two passes: the kernels' registration, and a call's tensors as the device code takes them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

#include "kernels/device/device_call.h"
#include "kernels/fault.h"
#include "kernels/numeric.h"
#include "kernels/softmax/call.h"
#include "kernels/softmax/cuda/two_pass.cuh"

namespace assay {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();  // blocks of a grid

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  if (p.steps > 0) return "knows the maximum before the first exponential: it has no states to show";
  if (p.rows > kMostRows) return "takes at most " + std::to_string(kMostRows) + " rows";
  return softmax_refuses(p, kInput);
}

Arithmetic declared(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  return {.scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kUnknown,  // 128 chains, then a binary tree
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kGlobal,
          .tile_order = TileOrder::kForward,
          .tile_n = static_cast<int>(p.n > 0 ? p.n : 1),  // the whole row is one tile
          .splits = 1};
}

DeviceSoftmaxFault planted() {
  if (faulty(Fault::kDeviceOverrun)) return DeviceSoftmaxFault::kOverrun;
  if (faulty(Fault::kWorkspaceUnset)) return DeviceSoftmaxFault::kUnsetWorkspace;
  if (faulty(Fault::kBarrierMissing)) return DeviceSoftmaxFault::kBarrierMissing;
  return DeviceSoftmaxFault::kNone;
}

template <class T, class Tensor>
DeviceRows<T> rows_of(const Tensor& tensor) {
  if (!tensor) return {};
  const std::int64_t column = tensor.layout->shape.size() > 1 ? tensor.stride(1) : 0;
  return {tensor.template data<std::remove_const_t<T>>(), tensor.stride(0), column};
}

float empty_y(const SoftmaxParams& p) {
  if (p.empty_output == EmptyOutput::kNan) return std::numeric_limits<float>::quiet_NaN();
  return p.empty_output == EmptyOutput::kMean && p.n > 0 ? 1.0F / static_cast<float>(p.n) : 0.0F;
}

template <class Element, class Output>
void launch(DeviceCall& device, const SoftmaxParams& p) {
  DeviceSoftmax<Element, Output> call;
  call.rows = p.rows;
  call.n = p.n;
  call.scale = p.scale;
  call.x = rows_of<const Element>(device.input("x"));
  if (p.data_mask == DataMask::kBool) call.keep = rows_of<const std::uint8_t>(device.input("mask"));
  if (p.data_mask == DataMask::kAdditive) call.bias = rows_of<const float>(device.input("mask"));
  call.y = rows_of<Output>(device.output("y"));
  if (p.lse != LseBase::kNone) call.lse = rows_of<float>(device.output("lse"));
  call.base_two = p.lse == LseBase::kTwo;
  call.empty_y = empty_y(p);
  call.empty_lse = p.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity;
  call.statistics = device.workspace<float>("statistics", 2 * p.rows);
  if (p.rows == 0) return;
  launch_row_statistics(call, planted(), device.stream());
  device.launched("row_statistics");
  launch_normalise(call, planted(), device.stream());
  device.launched("normalise");
}

template <class Element>
void launch_for_output(DeviceCall& device, const SoftmaxParams& p) {
  switch (p.output) {
    case Format::kFp32: return launch<Element, float>(device, p);
    case Format::kFp16: return launch<Element, __half>(device, p);
    case Format::kBf16: return launch<Element, __nv_bfloat16>(device, p);
    default: throw std::invalid_argument("softmax writes fp32, fp16 or bf16");
  }
}

template <class Element>
RunFacts run(const Call& host) {
  const SoftmaxParams p = softmax_params(host.params);
  DeviceCall device(host);
  launch_for_output<Element>(device, p);
  return device.finish("128 threads a row");
}

const RegisterKernel kFp32{{.name = "softmax_cuda_fp32",
                            .op = "softmax",
                            .summary = "safe softmax in two passes on the GPU, fp32 inputs",
                            .formats = {Format::kFp32},
                            .device = true,
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run<float>}};
const RegisterKernel kFp16{{.name = "softmax_cuda_fp16",
                            .op = "softmax",
                            .summary = "safe softmax in two passes on the GPU, fp16 inputs",
                            .formats = {Format::kFp16},
                            .device = true,
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run<__half>}};
const RegisterKernel kBf16{{.name = "softmax_cuda_bf16",
                            .op = "softmax",
                            .summary = "safe softmax in two passes on the GPU, bf16 inputs",
                            .formats = {Format::kBf16},
                            .device = true,
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run<__nv_bfloat16>}};

}  // namespace
}  // namespace assay
