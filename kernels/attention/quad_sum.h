// A row sum as a quad of threads keeps it: four interleaved chains, two shuffles at the end.
#pragma once

#include <array>
#include <cstdint>

namespace assay {

/// In the accumulator layout of m16n8k16, thread t of a quad owns columns 8 b + 2 t and 8 b + 2 t + 1.
using QuadSum = std::array<float, 4>;
inline float& lane_of(QuadSum& l, std::int64_t column) { return l[static_cast<std::size_t>(column % 8 / 2)]; }
inline float sum_of_quad(const QuadSum& l) { return (l[0] + l[2]) + (l[1] + l[3]); }

}  // namespace assay
