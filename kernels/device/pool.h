// Device and pinned host memory that later calls of the same thread use again: allocating costs more than a small
// kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace assay {

/// At least `bytes` bytes, from what this thread's earlier calls left or from CUDA. Contents are whatever was there.
class PooledMemory {
 public:
  enum class Kind : std::uint8_t { kDevice, kPinned };

  /// Throws CannotRun naming `what` if there is not enough.
  PooledMemory(Kind kind, std::int64_t bytes, const std::string& what);
  /// Leaves it to the thread's next calls, unless it is large.
  ~PooledMemory();
  PooledMemory(PooledMemory&& other) noexcept;
  PooledMemory& operator=(PooledMemory&&) = delete;

  std::byte* data() const { return data_; }

 private:
  Kind kind_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;  ///< allocated
};

}  // namespace assay
