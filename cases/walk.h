// Walks the rows of a tensor: the runs of values that a recipe fills at once, wherever they lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cases/recipes.h"

namespace assay {

/// How the values of one row are spread over a tensor: along axis c, in groups along axis g where there is one; without
/// channels along the last axis; but a last axis of positions (s, t, o) has rows of one value.
struct RowShape {
  std::int64_t size = 1;                            ///< values of a row
  std::int64_t group = 1;                           ///< of them along axis c (or the last)
  std::int64_t stride = 0, group_stride = 0;        ///< in the storage
  std::int64_t row_major = 0, group_row_major = 0;  ///< in row-major order
  std::vector<std::size_t> outer;                   ///< the axes over which rows are counted
};

inline RowShape row_shape(const InputSpec& spec) {
  const TensorLayout& layout = spec.layout;
  if (spec.axes.size() != layout.shape.size()) {
    std::fprintf(stderr, "tensor %s: %zu axis letters for %zu axes\n", layout.role.c_str(), spec.axes.size(),
                 layout.shape.size());
    std::abort();
  }
  const bool channels = spec.axes.find('c') != std::string::npos;
  const bool single = !channels && spec.axes.find_last_of("sto") == spec.axes.size() - 1;
  RowShape shape;
  std::int64_t weight = 1;  // of the axis in row-major order
  for (std::size_t axis = layout.shape.size(); axis-- > 0; weight *= layout.shape[axis]) {
    const bool inner = channels ? spec.axes[axis] == 'c' : !single && axis + 1 == layout.shape.size();
    if (inner) {
      shape.group = layout.shape[axis];
      shape.stride = layout.strides[axis];
      shape.row_major = weight;
    } else if (channels && spec.axes[axis] == 'g') {
      shape.group_stride = layout.strides[axis];
      shape.group_row_major = weight;
    } else {
      shape.outer.insert(shape.outer.begin(), axis);
      continue;
    }
    shape.size *= layout.shape[axis];
  }
  return shape;
}

/// One row's values in storage and in row-major order.
struct RowValues {
  const RowShape& shape;
  std::int64_t first = 0, first_row_major = 0;

  /// Calls visit(i, element, row_major) for value i = 0, 1, ... of the row.
  template <class Visit>
  void each(Visit visit) const {
    std::int64_t element = first, index = first_row_major;
    for (std::int64_t i = 0; i < shape.size; element += shape.group_stride, index += shape.group_row_major)
      for (std::int64_t c = 0; c < shape.group; ++c, ++i)
        visit(i, element + c * shape.stride, index + c * shape.row_major);
  }
};

/// Length of each sequence that has pages.
inline std::vector<std::int64_t> paged_lengths(const InputSpec& spec) {
  std::vector<std::int64_t> lengths;
  for (const PageUse& use : spec.pages) {
    if (use.batch < 0) continue;
    const auto b = static_cast<std::size_t>(use.batch);
    if (b >= lengths.size()) lengths.resize(b + 1, 0);
    lengths[b] = std::max(lengths[b], use.first + use.used);
  }
  return lengths;
}

/// The coordinates that `axes` names, at an index over the outer axes. A row of storage that no position uses has
/// length 0.
inline Row row_at(const InputSpec& spec, const RowShape& shape, std::span<const std::int64_t> index,
                  std::span<const std::int64_t> paged) {
  Row row;
  for (std::size_t n = 0; n < index.size(); ++n) {
    const std::size_t axis = shape.outer[n];
    const std::int64_t at = index[n];
    const std::int64_t extent = spec.layout.shape[axis];
    row.first = row.first * extent + at;
    switch (spec.axes[axis]) {
      case 'b': row.batch = at; break;
      case 'h': row.head = at; break;
      case 's':
        row.position = spec.first_position + at;
        row.length = spec.first_position + extent;
        break;
      case 'q':
        row.position = at;
        row.length = extent;
        break;
      case 't': {
        // The last start at or before `at`: sequences of length 0 share their start with the next one.
        const auto next = std::upper_bound(spec.starts.begin(), spec.starts.end(), at);
        row.batch = next - spec.starts.begin() - 1;
        row.position = spec.first_position + at - *(next - 1);
        row.length = spec.first_position + *next - *(next - 1);
        break;
      }
      case 'p': {
        const PageUse& use = spec.pages[static_cast<std::size_t>(at)];
        row.batch = std::max<std::int64_t>(0, use.batch);
        row.position += use.first;
        row.length = use.batch < 0 ? 0 : paged[static_cast<std::size_t>(use.batch)];
        break;
      }
      case 'o': row.position += at; break;
      default: row.other = row.other * extent + at;
    }
  }
  if (!spec.pages
           .empty()) {  // as if the sequences were stored one after the other, so that it is the same in every store
    const std::int64_t heads = spec.layout.shape[spec.axes.find('h')];
    const std::int64_t longest = paged.empty() ? 0 : *std::max_element(paged.begin(), paged.end());
    row.first = (row.batch * heads + row.head) * longest + row.position;
  }
  row.first *= shape.size;
  if (!spec.used.empty() && spec.axes.find('s') != std::string::npos)
    row.length = spec.first_position + spec.used[static_cast<std::size_t>(row.batch)];
  return row;
}

/// Calls visit(row, values) for every row. Along an axis of stride 0 (expanded) only index 0 is visited.
template <class Visit>
void for_each_row(const InputSpec& spec, Visit visit) {
  const TensorLayout& layout = spec.layout;
  const RowShape shape = row_shape(spec);
  if (layout.count() == 0) return;
  const std::vector<std::int64_t> paged = paged_lengths(spec);
  std::vector<std::int64_t> row_major(layout.shape.size(), 1);
  for (std::size_t axis = row_major.size(); axis-- > 1;) row_major[axis - 1] = row_major[axis] * layout.shape[axis];
  std::vector<std::int64_t> index(shape.outer.size(), 0);
  for (;;) {
    RowValues values{shape, layout.offset, 0};
    for (std::size_t n = 0; n < index.size(); ++n) {
      values.first += index[n] * layout.strides[shape.outer[n]];
      values.first_row_major += index[n] * row_major[shape.outer[n]];
    }
    visit(row_at(spec, shape, index, paged), values);
    std::size_t n = index.size();
    const auto extent = [&](std::size_t axis) { return layout.strides[axis] == 0 ? 1 : layout.shape[axis]; };
    while (n > 0 && ++index[n - 1] == extent(shape.outer[n - 1])) index[--n] = 0;
    if (n == 0) return;
  }
}

/// A position behind its sequence's length is an unused row of a padded batch or of a page.
inline bool is_used(const Row& row) { return row.position < row.length; }

}  // namespace assay
