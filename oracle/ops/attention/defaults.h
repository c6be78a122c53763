// Defaults of attention's parameters that depend on other parameters.
#pragma once

#include <cmath>
#include <cstdint>

#include "oracle/format.h"

namespace assay {

inline float default_scale(std::int64_t dim_qk) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_qk)));
}

inline Format default_output(Format input) { return bytes_per_element(input) == 1 ? Format::kBf16 : input; }

}  // namespace assay
