// DeviceCall: one kernel call on the GPU: tensors uploaded whole, guarded, and checked behind the launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/kernel.h"

struct CUstream_st;  // CUDA's cudaStream_t points to it: this header needs no toolkit

namespace assay {

/// A tensor in device memory: the layout that it has on the host, and the device address of its storage, which lies as
/// in host memory (padding, offset, strides) and starts at a multiple of 256 bytes. Host code must not read through it.
template <class Byte>
struct BasicDeviceTensor {
  const TensorLayout* layout = nullptr;
  Byte* storage = nullptr;

  explicit operator bool() const { return layout != nullptr; }
  Format format() const { return layout->format; }
  std::int64_t extent(std::size_t axis) const { return layout->shape[axis]; }
  std::int64_t stride(std::size_t axis) const { return layout->strides[axis]; }  ///< in elements
  /// Device address of element [0, ..., 0]. Throws std::invalid_argument if T has not the size of an element.
  template <class T>
  auto* data() const {
    if (sizeof(T) != static_cast<std::size_t>(bytes_per_element(layout->format)))
      throw std::invalid_argument("tensor " + layout->role + ": an element has not " + std::to_string(sizeof(T)) +
                                  " bytes");
    using Pointer = std::conditional_t<std::is_const_v<Byte>, const T*, T*>;
    return reinterpret_cast<Pointer>(storage) + layout->offset;
  }
};
using DeviceInput = BasicDeviceTensor<const std::byte>;
using DeviceOutput = BasicDeviceTensor<std::byte>;

/// The life of one call:
///
///   RunFacts run(const Call& host) {
///     DeviceCall call(host);                                              // uploads, fills canaries, sets guards
///     const auto q = call.input("q"); const auto o = call.output("o");
///     float* partial = call.workspace<float>("partial", splits * rows);   // poisoned
///     kernel<<<grid, block, shared, call.stream()>>>(q.data<bf16>(), ..., o.data<bf16>());
///     call.launched("kernel");                                            // a refused launch is an error here
///     return call.finish("tile 64x64");                                   // waits, checks, downloads the outputs
///   }
///
/// What goes wrong is thrown and becomes the run's outcome (kernels/run_error.h): no device and no memory skip the run;
/// a CUDA error is a crash with its name, and ends the worker if the device context is lost; a broken guard or a
/// changed input is a finding that names the tensor.
class DeviceCall {
 public:
  /// Uploads every input of `call`, which must outlive this.
  explicit DeviceCall(const Call& call);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  const Params& params() const;
  /// The input or output with that role. Throws std::invalid_argument if the call has none.
  DeviceInput input(std::string_view role) const;
  DeviceOutput output(std::string_view role) const;
  /// The same, or one that is false.
  DeviceInput find_input(std::string_view role) const;
  DeviceOutput find_output(std::string_view role) const;

  /// Device memory for `count` elements between guards, aligned to 256 bytes, filled with poison. `name` stands in
  /// findings.
  template <class T>
  T* workspace(std::string_view name, std::int64_t count) {
    return static_cast<T*>(workspace_bytes(name, count * static_cast<std::int64_t>(sizeof(T))));
  }

  /// The stream for every launch and copy of this call; never the default stream.
  CUstream_st* stream() const;
  /// Asks CUDA whether the launch just made was refused.
  void launched(std::string_view kernel);
  /// Waits for the stream; compares guards, inputs and the canary in outputs' padding; copies outputs to host memory.
  /// Call it once, last. The facts name `variant` and the device.
  RunFacts finish(std::string variant);

 private:
  void* workspace_bytes(std::string_view name, std::int64_t bytes);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
