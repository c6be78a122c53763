// Checking extents, strides and addresses without overflowing on the way.
#include "kernels/launch_check.h"

#include <cstdint>

namespace assay {
namespace {

/// a + b c, or nothing if it passes 64 bits.
std::optional<std::int64_t> multiply_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(a, product, &sum)) return std::nullopt;
  return sum;
}

}  // namespace

std::optional<std::string> launch_fault(const TensorLayout& layout, const std::byte* storage) {
  const auto fault = [&](const std::string& what) { return layout.role + ": " + what; };
  if (layout.shape.size() != layout.strides.size()) return fault("shape and strides differ in length");
  std::int64_t count = 1, first = layout.offset, last = layout.offset;
  for (std::size_t axis = 0; axis < layout.shape.size(); ++axis) {
    const std::int64_t extent = layout.shape[axis];
    const std::string at = " of axis " + std::to_string(axis);
    if (extent < 0) return fault("extent " + std::to_string(extent) + at + " is below 0");
    const auto elements = multiply_add(0, count, extent);
    if (!elements) return fault("extent " + std::to_string(extent) + at + " passes 2^63 elements");
    count = *elements;
    if (extent == 0) continue;
    std::int64_t& end = layout.strides[axis] < 0 ? first : last;
    const auto moved = multiply_add(end, extent - 1, layout.strides[axis]);
    if (!moved) return fault("stride " + std::to_string(layout.strides[axis]) + at + " passes 2^63 elements");
    end = *moved;
  }
  if (count > 0 && (first < 0 || last >= layout.storage))
    return fault("elements " + std::to_string(first) + " to " + std::to_string(last) + " of a storage of " +
                 std::to_string(layout.storage));
  const auto bytes = static_cast<std::uintptr_t>(bytes_per_element(layout.format));
  if (count > 0 && reinterpret_cast<std::uintptr_t>(storage) % bytes != 0)
    return fault("its address is no multiple of " + std::to_string(bytes) + " bytes");
  return std::nullopt;
}

}  // namespace assay
