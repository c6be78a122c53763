// Device memory, streams and guarded zones over the CUDA runtime.
#include "kernels/device/buffer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/device/check.cuh"

namespace assay {
namespace {

constexpr std::int64_t kGuard = 256;                                // also the alignment of cudaMalloc
constexpr std::int64_t kChunk = std::int64_t{16} << 20;             // compared at a time
constexpr std::array<unsigned char, 2> kGuardBytes = {0xfa, 0xff};  // the canary of kernels/guard.h

std::vector<std::byte> guard_pattern() {
  std::vector<std::byte> guard(static_cast<std::size_t>(kGuard));
  for (std::size_t k = 0; k < guard.size(); ++k) guard[k] = static_cast<std::byte>(kGuardBytes[k % 2]);
  return guard;
}

void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind, const DeviceStream& stream,
          const std::string& name) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream.get()), "copy of " + name);
}

/// Position of the first byte in which two ranges of one length differ, or nothing.
std::optional<std::int64_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto [at, ignored] = std::mismatch(a.begin(), a.end(), b.begin());
  return at == a.end() ? std::nullopt : std::optional(at - a.begin());
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::int64_t bytes, const std::string& what) : bytes_(bytes) {
  void* data = nullptr;
  check_cuda(cudaMalloc(&data, static_cast<std::size_t>(bytes)), std::to_string(bytes) + " bytes for " + what);
  data_ = static_cast<std::byte*>(data);
}

// Errors are left to the calls that still expect something of the device.
DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

DeviceStream::DeviceStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
}

DeviceStream::~DeviceStream() { cudaStreamDestroy(stream_); }

void DeviceStream::wait() const { check_cuda(cudaStreamSynchronize(stream_), "waiting for the kernel"); }

DeviceZone::DeviceZone(std::string name, std::int64_t bytes, Guards guards, const DeviceStream& stream)
    : name_(std::move(name)),
      bytes_(bytes),
      guard_(guards == Guards::kBoth ? kGuard : 0),
      buffer_(bytes + 2 * guard_, name_) {
  if (guard_ == 0) return;
  static const std::vector<std::byte> kPattern = guard_pattern();
  copy(buffer_.data(), kPattern.data(), guard_, cudaMemcpyHostToDevice, stream, name_);
  copy(storage() + bytes_, kPattern.data(), guard_, cudaMemcpyHostToDevice, stream, name_);
}

std::byte* DeviceZone::storage() const { return buffer_.data() == nullptr ? nullptr : buffer_.data() + guard_; }

void DeviceZone::upload(std::span<const std::byte> storage_bytes, const DeviceStream& stream) const {
  copy(storage(), storage_bytes.data(), bytes_, cudaMemcpyHostToDevice, stream, name_);
}

void DeviceZone::fill(unsigned char pattern, const DeviceStream& stream) const {
  if (bytes_ == 0) return;
  check_cuda(cudaMemsetAsync(storage(), pattern, static_cast<std::size_t>(bytes_), stream.get()), "fill of " + name_);
}

void DeviceZone::download(std::span<std::byte> to, const DeviceStream& stream) const {
  copy(to.data(), storage(), bytes_, cudaMemcpyDeviceToHost, stream, name_);
  stream.wait();
}

std::optional<std::string> DeviceZone::broken_guard(const DeviceStream& stream) const {
  if (guard_ == 0) return std::nullopt;
  static const std::vector<std::byte> kPattern = guard_pattern();
  std::vector<std::byte> before(kPattern.size()), behind(kPattern.size());
  copy(before.data(), buffer_.data(), guard_, cudaMemcpyDeviceToHost, stream, name_);
  copy(behind.data(), storage() + bytes_, guard_, cudaMemcpyDeviceToHost, stream, name_);
  stream.wait();
  const std::string found = "wrote outside " + name_ + " on the device: byte ";
  const std::string size = " its " + std::to_string(bytes_) + " bytes";
  if (const auto at = first_difference(behind, kPattern)) return found + std::to_string(*at) + " behind" + size;
  if (const auto at = first_difference(before, kPattern))
    return found + std::to_string(guard_ - *at) + " before" + size;
  return std::nullopt;
}

std::optional<std::string> DeviceZone::changed(std::span<const std::byte> expected, const DeviceStream& stream) const {
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(kChunk, bytes_)));
  for (std::int64_t at = 0; at < bytes_; at += kChunk) {
    const auto part = std::span(chunk).first(static_cast<std::size_t>(std::min(kChunk, bytes_ - at)));
    copy(part.data(), storage() + at, static_cast<std::int64_t>(part.size()), cudaMemcpyDeviceToHost, stream, name_);
    stream.wait();
    if (const auto found = first_difference(part, expected.subspan(static_cast<std::size_t>(at), part.size())))
      return "changed " + name_ + " on the device: byte " + std::to_string(at + *found) + " of " +
             std::to_string(bytes_);
  }
  return std::nullopt;
}

}  // namespace assay
