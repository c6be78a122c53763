// Walks the rows (runs along the last axis) of a tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cases/recipes.h"

namespace assay {

/// Sets the coordinates that `axes` names, at an index over all axes but the last.
inline Row row_at(const InputSpec& spec, std::span<const std::int64_t> index) {
  Row row;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    const std::int64_t at = index[axis];
    const std::int64_t extent = spec.layout.shape[axis];
    row.first = row.first * extent + at;
    switch (spec.axes[axis]) {
      case 'b': row.batch = at; break;
      case 'h': row.head = at; break;
      case 's':
      case 'q':
        row.position = at;
        row.length = extent;
        break;
      case 't': {
        // The last start at or before `at`: sequences of length 0 share their start with the next one.
        const auto next = std::upper_bound(spec.starts.begin(), spec.starts.end(), at);
        row.batch = next - spec.starts.begin() - 1;
        row.position = at - *(next - 1);
        row.length = *next - *(next - 1);
        break;
      }
      default: row.other = row.other * extent + at;
    }
  }
  row.first *= spec.layout.shape.back();
  if (!spec.used.empty() && spec.axes.find('s') != std::string::npos)
    row.length = spec.used[static_cast<std::size_t>(row.batch)];
  return row;
}

/// Calls visit(row, element) for every row; `element` is the storage position of the row's first element.
template <class Visit>
void for_each_row(const InputSpec& spec, Visit visit) {
  const TensorLayout& layout = spec.layout;
  if (spec.axes.size() != layout.shape.size()) {
    std::fprintf(stderr, "tensor %s: %zu axis letters for %zu axes\n", layout.role.c_str(), spec.axes.size(),
                 layout.shape.size());
    std::abort();
  }
  if (layout.count() == 0) return;
  std::vector<std::int64_t> index(layout.shape.size() - 1, 0);
  for (;;) {
    std::int64_t element = layout.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * layout.strides[axis];
    visit(row_at(spec, index), element);
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == layout.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

/// A position behind its sequence's length is an unused row of a padded batch.
inline bool is_used(const Row& row) { return row.position < row.length; }

}  // namespace assay
