// LaunchCheck: whether a tensor's numbers make sense at all, asked before any kernel sees them.
#pragma once

#include <optional>
#include <string>

#include "oracle/tensor.h"

namespace assay {

/// Why no kernel may be launched on a tensor, or nothing: an extent below 0, a count of elements or an address beyond
/// 64 bits, an element outside the storage, or a storage that is not aligned to its elements.
std::optional<std::string> launch_fault(const TensorLayout& layout, const std::byte* storage);

}  // namespace assay
