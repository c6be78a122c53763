// One head vector in memory: where its channels lie, loading it widened to fp32; tensors and integers by role.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "oracle/tensor.h"

namespace assay {

/// [first, end) of keys or of key tiles.
struct KeyRange {
  std::int64_t first = 0, end = 0;
  bool empty() const { return end <= first; }
  std::int64_t size() const { return empty() ? 0 : end - first; }
};

/// Channel c lies at first + c / group * group_stride + c % group * stride, in elements.
struct VectorPlace {
  std::int64_t first = 0, stride = 1, group = 1, group_stride = 0;
};

/// The element at these indices if the strides were those of the shape; what the layout says where that storage is
/// larger than the tensor's. Planted faults take it.
std::int64_t dense_element(const TensorLayout& t, std::initializer_list<std::int64_t> index);

/// out[c] = channel c < count, widened to fp32 (exact for every format of 32 bits or fewer).
void load_vector(const TensorView& t, const VectorPlace& at, std::int64_t count, float* out);

/// Row-major fp32 matrix, zero-padded to multiples of tiles and of the MMA's K.
struct HeadMatrix {
  std::int64_t rows = 0, cols = 0;  ///< with padding
  std::vector<float> data;
  const float* row(std::int64_t r) const { return data.data() + r * cols; }
};

HeadMatrix transposed(const HeadMatrix& m);

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// The input with that role. Throws std::invalid_argument if there is none.
TensorView required_input(std::span<const TensorView> inputs, std::string_view role);
/// Element of an int32 tensor.
template <class... Index>
std::int64_t int_element(const TensorView& t, Index... index) {
  return static_cast<std::int32_t>(t.code(t.element(index...)));
}
/// Element of an fp32 tensor.
template <class... Index>
float float_element(const TensorView& t, Index... index) {
  return static_cast<float>(t.value(t.element(index...)));
}

}  // namespace assay
