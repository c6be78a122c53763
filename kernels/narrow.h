// Intermediates stored in a narrower format, as planted faults do.
#pragma once

#include <limits>
#include <span>

#include "oracle/format.h"

namespace assay {

inline float narrowed(Format format, float x) { return static_cast<float>(round_to(format, static_cast<double>(x))); }

/// What passes the largest number of a format becomes infinite, and nothing else changes: the format's range alone.
inline float ranged(Format format, float x) {
  const auto limit = static_cast<float>(info(format).max_finite);
  return x > limit ? std::numeric_limits<float>::infinity() : x < -limit ? -std::numeric_limits<float>::infinity() : x;
}

inline void narrow_all(Format format, std::span<float> values) {
  for (float& x : values) x = narrowed(format, x);
}

}  // namespace assay
