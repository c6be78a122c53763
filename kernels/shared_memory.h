// Shared memory between supervisor and worker: tensors in guarded zones of one file without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/tensor.h"

namespace assay {

/// A memory file that can grow and never shrink (sealed), so that a worker cannot take mapped pages away.
class SharedMemory {
 public:
  /// Throws EnvironmentError if the system gives none.
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  /// The first `bytes` bytes, allocated and mapped. Throws EnvironmentError if there is no space.
  std::span<std::byte> resize(std::int64_t bytes);

 private:
  void unmap();

  int fd_ = -1;
  std::byte* start_ = nullptr;
  std::size_t mapped_ = 0;
};

/// Places one zone per tensor, inputs first.
struct ZonePlan {
  ZonePlan(const std::vector<Tensor>& inputs, const std::vector<TensorLayout>& outputs);
  std::vector<std::int64_t> inputs, outputs;  ///< start of each zone
  std::int64_t bytes = 0;                     ///< of all zones, at least one page
};

}  // namespace assay
