// The tensors of one call in one block of device memory, each between guards, with an image in host memory: one copy
// there, one back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/pool.h"

namespace assay {

struct GuardedZone {
  std::string name;  ///< as in findings: "output o"
  std::int64_t bytes = 0;
};

class GuardedBlock {
 public:
  /// Guards are in place in the image. Every storage starts at a multiple of 256 bytes.
  explicit GuardedBlock(std::vector<GuardedZone> zones);

  /// The storage of zone i in the image, and on the device.
  std::span<std::byte> image(std::size_t i) const;
  std::byte* storage(std::size_t i) const;

  /// The whole image, there and back; neither waits.
  void upload(const DeviceStream& stream) const;
  void download(const DeviceStream& stream) const;

  /// "wrote outside output o on the device: byte 5 behind its 4096 bytes", or nothing; of the image.
  std::optional<std::string> broken_guard(std::size_t i) const;
  /// "changed input q on the device: byte 5 of 4096", or nothing; of the image.
  std::optional<std::string> changed(std::size_t i, std::span<const std::byte> expected) const;

 private:
  std::int64_t total() const;

  std::vector<GuardedZone> zones_;
  std::vector<std::int64_t> at_;  ///< where each storage starts; the last one: the end of the block
  PooledMemory device_, host_;
};

}  // namespace assay
