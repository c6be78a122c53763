// Shadow quantities of rows: intermediates that a kernel might hold in a narrow format, computed from the inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// One intermediate of a sampled row. `low` and `high` enclose its largest magnitude whatever the order of summation;
/// element: index into the row's o, -1: of the whole row.
struct Shadow {
  std::size_t row = 0;
  std::int64_t element = -1;
  double low = 0, high = 0;
};

inline constexpr std::string_view kRawScore = "raw score q.k", kSoftmaxScale = "scale",
                                  kAccumulator = "accumulator of P V before its normalisation";

struct ShadowKind {
  std::string what;         ///< kRawScore, ...
  std::string cured_by;     ///< what moves the threshold: input "q", "v", "x" or "o_parts", or kSoftmaxScale
  bool scale_back = false;  ///< the softmax scale can take back what the input loses
  std::vector<Shadow> values;
};

/// Of the rows that the scene's trial samples.
std::vector<ShadowKind> shadows(const Scene& scene);

}  // namespace assay
