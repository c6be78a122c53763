// Intermediates stored in a narrower format, as planted faults do.
#pragma once

#include <span>

#include "oracle/format.h"

namespace assay {

inline float narrowed(Format format, float x) { return static_cast<float>(round_to(format, static_cast<double>(x))); }

inline void narrow_all(Format format, std::span<float> values) {
  for (float& x : values) x = narrowed(format, x);
}

}  // namespace assay
