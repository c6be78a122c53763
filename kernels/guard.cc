// Guard zones: filling them with the canary and looking for changes.
#include "kernels/guard.h"

#include <vector>

namespace assay {
namespace {

/// The canary as bytes: of a zone, whose storage starts at an even position, the bytes at even positions and those at
/// odd ones.
struct CanaryBytes {
  explicit CanaryBytes(Format format)
      : even(static_cast<std::byte>(canary_code(format))),
        odd(bytes_per_element(format) == 1 ? even : static_cast<std::byte>(canary_code(format) >> 8)) {}
  std::byte even, odd;
};

bool is_canary(std::span<const std::byte> zone, std::size_t first, std::size_t end, const CanaryBytes& canary) {
  unsigned changed = 0;
  for (std::size_t k = first; k < end; ++k)
    changed |= std::to_integer<unsigned>(zone[k] ^ (k % 2 == 0 ? canary.even : canary.odd));
  return changed == 0;
}

std::vector<bool> addressed_elements(const TensorLayout& layout) {
  std::vector<bool> addressed(static_cast<std::size_t>(layout.storage), false);
  if (layout.count() == 0) return addressed;
  std::vector<std::int64_t> index(layout.shape.size(), 0);
  for (std::int64_t at = layout.offset;;) {
    addressed[static_cast<std::size_t>(at)] = true;
    std::size_t axis = index.size();
    while (axis > 0) {
      --axis;
      at += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      at -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
      if (axis == 0) return addressed;
    }
    if (index.empty()) return addressed;
  }
}

}  // namespace

std::int64_t zone_bytes(const TensorLayout& layout) {
  return (2 * kGuardBytes + layout.storage_bytes() + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
}

void fill_zone(std::span<std::byte> zone, const TensorLayout& layout) {
  const CanaryBytes canary(layout.format);
  for (std::size_t k = 0; k < zone.size(); ++k) zone[k] = k % 2 == 0 ? canary.even : canary.odd;
}

bool guards_intact(std::span<const std::byte> zone, const TensorLayout& layout) {
  const CanaryBytes canary(layout.format);
  const auto end = static_cast<std::size_t>(kGuardBytes + layout.storage_bytes());
  return is_canary(zone, 0, static_cast<std::size_t>(kGuardBytes), canary) && is_canary(zone, end, zone.size(), canary);
}

bool padding_intact(std::span<const std::byte> zone, const TensorLayout& layout) {
  if (layout.count() == layout.storage) return true;  // output layouts do not overlap: nothing is left over
  const std::vector<bool> addressed = addressed_elements(layout);
  const std::byte* storage = zone.data() + kGuardBytes;
  for (std::int64_t e = 0; e < layout.storage; ++e)
    if (!addressed[static_cast<std::size_t>(e)] && load_code(storage, layout.format, e) != canary_code(layout.format))
      return false;
  return true;
}

}  // namespace assay
