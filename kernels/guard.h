// Guard zones: canary bytes around and inside a tensor's storage, and the check that they are still there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "oracle/tensor.h"

namespace assay {

/// Canary bytes before a storage, and at least as many behind it.
inline constexpr std::int64_t kGuardBytes = 64;

/// Bytes of a zone: guard, storage, guard; a multiple of kGuardBytes, so that storages in a row of zones stay aligned.
std::int64_t zone_bytes(const TensorLayout& layout);

/// Fills a whole zone with the canary of the tensor's format (canary_code). The storage starts at kGuardBytes.
void fill_zone(std::span<std::byte> zone, const TensorLayout& layout);

/// Whether both guards still hold the canary.
bool guards_intact(std::span<const std::byte> zone, const TensorLayout& layout);

/// Whether every storage element that no index of the layout reaches (padding) still holds the canary.
bool padding_intact(std::span<const std::byte> zone, const TensorLayout& layout);

}  // namespace assay
