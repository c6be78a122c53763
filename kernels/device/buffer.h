// RAII for streams and for a tensor or workspace in device memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/device/pool.h"

struct CUstream_st;

namespace assay {

/// A stream that does not wait for the default stream.
class DeviceStream {
 public:
  DeviceStream();
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  CUstream_st* get() const { return stream_; }
  /// Waits for everything launched on it. Throws what check_cuda throws for an error of any of it.
  void wait() const;

 private:
  CUstream_st* stream_ = nullptr;
};

/// Storage of one tensor or workspace: guard, storage, guard; the storage starts at a multiple of 256 bytes. Without
/// guards the storage is the whole allocation, so that a memory checker sees the first byte outside it.
class DeviceZone {
 public:
  enum class Guards : bool { kNone, kBoth };

  /// `name` as in findings: "output o". Throws CannotRun naming it if there is not enough memory.
  DeviceZone(std::string name, std::int64_t bytes, Guards guards, const DeviceStream& stream);
  ~DeviceZone();
  DeviceZone(DeviceZone&& other) noexcept;
  DeviceZone& operator=(DeviceZone&&) = delete;

  std::byte* storage() const { return pooled_ ? pooled_->data() + guard_ : exact_; }

  void upload(std::span<const std::byte> storage, const DeviceStream& stream) const;
  void fill(unsigned char pattern, const DeviceStream& stream) const;

  /// What guard_finding says.
  std::optional<std::string> broken_guard(const DeviceStream& stream) const;

 private:
  std::string name_;
  std::int64_t bytes_, guard_;
  std::optional<PooledMemory> pooled_;  ///< with guards
  std::byte* exact_ = nullptr;          ///< without
};

}  // namespace assay
