// Loads of head vectors from any strides and formats.
#include "kernels/attention/vectors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/fault.h"

namespace assay {
namespace {

float read(Format format, std::uint64_t code) {
  if (format == Format::kE4m3 && is_nan(format, code) && faulty(Fault::kNanCodeDecoded))
    return sign_bit(format, code) ? -480.0F : 480.0F;
  if (format == Format::kE4m3 && is_subnormal(format, code) && faulty(Fault::kSubnormalCodes)) return 0.0F;
  return static_cast<float>(decode(format, code));
}

void load_run(const TensorView& t, std::int64_t first, std::int64_t stride, std::int64_t count, float* out) {
  const std::byte* at = t.storage + first * bytes_per_element(t.format());
  switch (t.format()) {
    case Format::kBf16:
      for (std::int64_t c = 0; c < count; ++c) {
        std::uint16_t code = 0;
        std::memcpy(&code, at + c * stride * 2, 2);
        out[c] = std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
      }
      break;
    case Format::kFp32:
      for (std::int64_t c = 0; c < count; ++c) std::memcpy(out + c, at + c * stride * 4, 4);
      break;
    default:
      for (std::int64_t c = 0; c < count; ++c) out[c] = read(t.format(), t.code(first + c * stride));
  }
}

}  // namespace

std::int64_t dense_element(const TensorLayout& t, std::initializer_list<std::int64_t> index) {
  const bool fits = t.count() <= t.storage;
  std::int64_t element = fits ? 0 : t.offset;
  std::size_t axis = 0;
  for (const std::int64_t at : index) {
    element = fits ? element * t.shape[axis] + at : element + at * t.strides[axis];
    ++axis;
  }
  return element;
}

void load_vector(const TensorView& t, const VectorPlace& at, std::int64_t count, float* out) {
  for (std::int64_t c = 0; c < count; c += at.group)
    load_run(t, at.first + c / at.group * at.group_stride, at.stride, std::min(at.group, count - c), out + c);
}

HeadMatrix transposed(const HeadMatrix& m) {
  HeadMatrix t{m.cols, m.rows, std::vector<float>(m.data.size())};
  constexpr std::int64_t kBlock = 16;  // rows whose cache lines are written together
  for (std::int64_t first = 0; first < m.rows; first += kBlock)
    for (std::int64_t c = 0; c < m.cols; ++c)
      for (std::int64_t r = first; r < std::min(first + kBlock, m.rows); ++r)
        t.data[static_cast<std::size_t>(c * m.rows + r)] = m.row(r)[c];
  return t;
}

TensorView required_input(std::span<const TensorView> inputs, std::string_view role) {
  const TensorView view = find_view(inputs, role);
  if (view.layout == nullptr) throw std::invalid_argument("attention needs a tensor " + std::string(role));
  return view;
}

}  // namespace assay
