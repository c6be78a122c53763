// Streams and zones over the CUDA runtime.
#include "kernels/device/buffer.h"

#include <utility>
#include <vector>

#include "kernels/device/check.cuh"
#include "kernels/device/guards.h"

namespace assay {
namespace {

void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind, const DeviceStream& stream,
          const std::string& name) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream.get()), "copy of " + name);
}

}  // namespace

DeviceStream::DeviceStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
}

// Errors are left to the calls that still expect something of the device.
DeviceStream::~DeviceStream() { cudaStreamDestroy(stream_); }

void DeviceStream::wait() const { check_cuda(cudaStreamSynchronize(stream_), "waiting for the kernel"); }

DeviceZone::DeviceZone(std::string name, std::int64_t bytes, Guards guards, const DeviceStream& stream)
    : name_(std::move(name)), bytes_(bytes), guard_(guards == Guards::kBoth ? kDeviceGuard : 0) {
  if (guards == Guards::kNone) {
    void* data = nullptr;
    check_cuda(cudaMalloc(&data, static_cast<std::size_t>(bytes_)), std::to_string(bytes_) + " bytes for " + name_);
    exact_ = static_cast<std::byte*>(data);
    return;
  }
  pooled_.emplace(PooledMemory::Kind::kDevice, bytes_ + 2 * guard_, name_);
  copy(pooled_->data(), device_guard().data(), guard_, cudaMemcpyHostToDevice, stream, name_);
  copy(storage() + bytes_, device_guard().data(), guard_, cudaMemcpyHostToDevice, stream, name_);
}

DeviceZone::~DeviceZone() { cudaFree(exact_); }

DeviceZone::DeviceZone(DeviceZone&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(other.bytes_),
      guard_(other.guard_),
      pooled_(std::move(other.pooled_)),
      exact_(std::exchange(other.exact_, nullptr)) {}

void DeviceZone::upload(std::span<const std::byte> storage_bytes, const DeviceStream& stream) const {
  copy(storage(), storage_bytes.data(), bytes_, cudaMemcpyHostToDevice, stream, name_);
}

void DeviceZone::fill(unsigned char pattern, const DeviceStream& stream) const {
  if (bytes_ == 0) return;
  check_cuda(cudaMemsetAsync(storage(), pattern, static_cast<std::size_t>(bytes_), stream.get()), "fill of " + name_);
}

std::optional<std::string> DeviceZone::broken_guard(const DeviceStream& stream) const {
  if (!pooled_) return std::nullopt;
  std::vector<std::byte> before(device_guard().size()), behind(before.size());
  copy(before.data(), pooled_->data(), guard_, cudaMemcpyDeviceToHost, stream, name_);
  copy(behind.data(), storage() + bytes_, guard_, cudaMemcpyDeviceToHost, stream, name_);
  stream.wait();
  return guard_finding(name_, bytes_, before, behind);
}

}  // namespace assay
