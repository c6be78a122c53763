// Tensor = role + format + shape + strides + bytes; views for kernels; nothing here knows an op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/format.h"

namespace assay {

/// Where a tensor's elements lie in a flat storage. All in elements, never in bytes.
struct TensorLayout {
  std::string role;  ///< "q", "k", "v", "mask", "o", "lse", "cu_seqlens_q", ...
  Format format = Format::kFp32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;   ///< of element [0, ..., 0] in the storage
  std::int64_t storage = 0;  ///< elements in the storage, used and unused
  bool operator==(const TensorLayout&) const = default;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t extent : shape) n *= extent;
    return n;
  }
  std::int64_t storage_bytes() const { return storage * bytes_per_element(format); }
};

/// Reads one stored code; the buffer need not be aligned.
inline std::uint64_t load_code(const std::byte* storage, Format format, std::int64_t element) {
  switch (bytes_per_element(format)) {
    case 1: return std::to_integer<std::uint64_t>(storage[element]);
    case 2: { std::uint16_t v; std::memcpy(&v, storage + element * 2, 2); return v; }
    case 4: { std::uint32_t v; std::memcpy(&v, storage + element * 4, 4); return v; }
    default: { std::uint64_t v; std::memcpy(&v, storage + element * 8, 8); return v; }
  }
}

inline void store_code(std::byte* storage, Format format, std::int64_t element, std::uint64_t code) {
  switch (bytes_per_element(format)) {
    case 1: storage[element] = static_cast<std::byte>(code); break;
    case 2: { const auto v = static_cast<std::uint16_t>(code); std::memcpy(storage + element * 2, &v, 2); break; }
    case 4: { const auto v = static_cast<std::uint32_t>(code); std::memcpy(storage + element * 4, &v, 4); break; }
    default: std::memcpy(storage + element * 8, &code, 8);
  }
}

/// What every output element holds before a run, so that an unwritten one is visible: a NaN in each float format, and no
/// NaN that arithmetic or a conversion makes (bytes fa ff repeated; in 8-bit formats ff alone).
inline std::uint64_t canary_code(Format format) {
  switch (bytes_per_element(format)) {
    case 1: return 0xff;
    case 2: return 0xfffa;
    case 4: return 0xfffafffa;
    default: return 0xfffafffafffafffa;
  }
}

/// A tensor in memory somebody else owns. `Byte` is `const std::byte` for inputs and `std::byte` for outputs.
template <class Byte>
struct BasicTensorView {
  const TensorLayout* layout = nullptr;
  Byte* storage = nullptr;

  Format format() const { return layout->format; }
  std::int64_t extent(std::size_t axis) const { return layout->shape[axis]; }
  std::int64_t stride(std::size_t axis) const { return layout->strides[axis]; }
  template <class... Index>
  std::int64_t element(Index... index) const {
    std::int64_t at = layout->offset;
    std::size_t axis = 0;
    ((at += static_cast<std::int64_t>(index) * layout->strides[axis++]), ...);
    return at;
  }
  std::uint64_t code(std::int64_t element) const { return load_code(storage, layout->format, element); }
  double value(std::int64_t element) const { return decode(layout->format, code(element)); }
  void set_code(std::int64_t element, std::uint64_t code) const { store_code(storage, layout->format, element, code); }
};
using TensorView = BasicTensorView<const std::byte>;
using OutputView = BasicTensorView<std::byte>;

/// A tensor that owns its bytes.
struct Tensor {
  TensorLayout layout;
  std::vector<std::byte> bytes;  ///< layout.storage_bytes() of them
  TensorView view() const { return {&layout, bytes.data()}; }
  OutputView output() { return {&layout, bytes.data()}; }
};

/// The view with that role, or one with null storage.
template <class View>
View find_view(std::span<const View> views, std::string_view role) {
  for (const View& view : views)
    if (view.layout->role == role) return view;
  return {};
}

}  // namespace assay
