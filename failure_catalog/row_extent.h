// What a row of any op is made of: keys, elements or parts that may take part, and their logits.
#pragma once

#include <cstdint>
#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

struct RowExtent {
  std::int64_t length = 0;         ///< keys of the sequence, elements of the row, or parts
  std::vector<std::int32_t> key;   ///< ascending: those with a logit above -inf by mask and bias
  std::vector<double> logit = {};  ///< parallel to key, in natural units; only if asked for
};
/// `row` is an index into Truth::rows.
RowExtent row_extent(const Scene& scene, std::size_t row, bool with_logits = false);

}  // namespace assay
