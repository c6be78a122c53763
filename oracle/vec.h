// Four doubles at once, with operations that read the same for one: the same bits on every target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oracle/simd.h"

// Vectors are wider than some targets' registers: functions take them by reference and are always inlined, so that no
// calling convention matters.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // of returning them
#endif

namespace assay {

inline constexpr std::size_t kVec = 4;
typedef double Vec __attribute__((vector_size(32)));
typedef std::uint64_t VecBits __attribute__((vector_size(32)));
typedef double VecInArray __attribute__((vector_size(32), aligned(8), may_alias));
using VecMask = decltype(Vec{} < Vec{});

[[gnu::always_inline]] inline std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
[[gnu::always_inline]] inline double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }
[[gnu::always_inline]] inline VecBits bits_of(const Vec& x) { return reinterpret_cast<VecBits>(x); }
[[gnu::always_inline]] inline Vec from_bits(const VecBits& bits) { return reinterpret_cast<Vec>(bits); }

/// mask ? a : b, for the result of a comparison of vectors.
[[gnu::always_inline]] inline Vec select(const VecMask& mask, const Vec& a, const Vec& b) { return mask ? a : b; }

[[gnu::always_inline]] inline Vec load(const double* x) { return *reinterpret_cast<const VecInArray*>(x); }
[[gnu::always_inline]] inline void store(double* to, const Vec& x) { *reinterpret_cast<VecInArray*>(to) = x; }

/// Sixteen lanes: four vectors, of numbers that lie one after the other.
struct Lanes16 {
  static constexpr std::size_t kVecs = 4;
  Vec v[kVecs];
  [[gnu::always_inline]] explicit Lanes16(const double* lanes) {
    for (std::size_t i = 0; i < kVecs; ++i) v[i] = load(lanes + i * kVec);
  }
  [[gnu::always_inline]] void store_to(double* lanes) const {
    for (std::size_t i = 0; i < kVecs; ++i) store(lanes + i * kVec, v[i]);
  }
};

}  // namespace assay
