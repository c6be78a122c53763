// Zones one after the other: guard, storage, guard and padding up to the next.
#include "kernels/device/guarded_block.h"

#include <cstring>
#include <utility>

#include "kernels/device/check.cuh"
#include "kernels/device/guards.h"

namespace assay {
namespace {

std::vector<std::int64_t> starts_of(const std::vector<GuardedZone>& zones) {
  std::vector<std::int64_t> starts{kDeviceGuard};
  for (const GuardedZone& zone : zones) {
    const std::int64_t end = starts.back() + zone.bytes + kDeviceGuard;  // of the guard behind
    starts.push_back((end + kDeviceGuard - 1) / kDeviceGuard * kDeviceGuard + kDeviceGuard);
  }
  return starts;
}

}  // namespace

GuardedBlock::GuardedBlock(std::vector<GuardedZone> zones)
    : zones_(std::move(zones)),
      at_(starts_of(zones_)),
      device_(PooledMemory::Kind::kDevice, total(), "the call's tensors"),
      host_(PooledMemory::Kind::kPinned, total(), "the call's tensors, pinned") {
  for (std::size_t i = 0; i < zones_.size(); ++i) {
    const std::span<std::byte> storage = image(i);
    std::memcpy(storage.data() - kDeviceGuard, device_guard().data(), static_cast<std::size_t>(kDeviceGuard));
    std::memcpy(storage.data() + storage.size(), device_guard().data(), static_cast<std::size_t>(kDeviceGuard));
  }
}

std::int64_t GuardedBlock::total() const { return at_.back(); }

std::span<std::byte> GuardedBlock::image(std::size_t i) const {
  return {host_.data() + at_[i], static_cast<std::size_t>(zones_[i].bytes)};
}

std::byte* GuardedBlock::storage(std::size_t i) const { return device_.data() + at_[i]; }

void GuardedBlock::upload(const DeviceStream& stream) const {
  check_cuda(cudaMemcpyAsync(device_.data(), host_.data(), static_cast<std::size_t>(total()), cudaMemcpyHostToDevice,
                             stream.get()),
             "copy of the call's tensors");
}

void GuardedBlock::download(const DeviceStream& stream) const {
  check_cuda(cudaMemcpyAsync(host_.data(), device_.data(), static_cast<std::size_t>(total()), cudaMemcpyDeviceToHost,
                             stream.get()),
             "copy of the call's tensors");
}

std::optional<std::string> GuardedBlock::broken_guard(std::size_t i) const {
  const std::span<const std::byte> storage = image(i);
  return guard_finding(zones_[i].name, zones_[i].bytes, {storage.data() - kDeviceGuard, device_guard().size()},
                       {storage.data() + storage.size(), device_guard().size()});
}

std::optional<std::string> GuardedBlock::changed(std::size_t i, std::span<const std::byte> expected) const {
  const auto at = first_difference(image(i), expected);
  if (!at) return std::nullopt;
  return "changed " + zones_[i].name + " on the device: byte " + std::to_string(*at) + " of " +
         std::to_string(zones_[i].bytes);
}

}  // namespace assay
