// Row-major layouts, with unused elements in front and behind each run of the last axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "oracle/tensor.h"

namespace assay {

/// The last axis is contiguous; `pad` unused elements follow each of its runs, `offset` unused elements stand in front.
inline TensorLayout row_major(std::string role, Format format, std::vector<std::int64_t> shape, std::int64_t pad = 0,
                              std::int64_t offset = 0) {
  TensorLayout t;
  t.role = std::move(role);
  t.format = format;
  t.strides.assign(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    t.strides[axis - 1] = t.strides[axis] * (shape[axis] + (axis + 1 == shape.size() ? pad : 0));
  t.offset = offset;
  t.storage = offset + (shape.size() > 1 ? t.strides[0] * shape[0] : shape[0] + pad);
  t.shape = std::move(shape);
  return t;
}

}  // namespace assay
