// Decodes many elements of a tensor at once; the loops that every evaluation of attention waits for.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/tensor.h"

namespace assay {

/// out[i] = t.value(first + i stride) for a stride >= 0, for number formats. NaN codes give some NaN.
void decode_run(const TensorView& t, std::int64_t first, std::int64_t stride, std::span<double> out);

}  // namespace assay
