// RAII for device memory, streams, and a tensor or workspace between guards in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

struct CUstream_st;

namespace assay {

/// Device memory of exactly `bytes` bytes. Throws CannotRun naming `what` if there is not enough.
class DeviceBuffer {
 public:
  DeviceBuffer(std::int64_t bytes, const std::string& what);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_;
};

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

  /// `name` as in findings: "output o".
  DeviceZone(std::string name, std::int64_t bytes, Guards guards, const DeviceStream& stream);

  std::byte* storage() const;
  std::int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  void upload(std::span<const std::byte> storage, const DeviceStream& stream) const;
  void fill(unsigned char pattern, const DeviceStream& stream) const;
  /// Copies the storage to the host and waits for it.
  void download(std::span<std::byte> storage, const DeviceStream& stream) const;

  /// "wrote outside output o on the device: byte 5 behind its 4096 bytes", or nothing.
  std::optional<std::string> broken_guard(const DeviceStream& stream) const;
  /// "changed input q on the device: byte 5 of 4096", or nothing.
  std::optional<std::string> changed(std::span<const std::byte> expected, const DeviceStream& stream) const;

 private:
  std::string name_;
  std::int64_t bytes_, guard_;
  DeviceBuffer buffer_;
};

}  // namespace assay
