// Unit roundoffs, gamma_n and the accumulation errors that every op's bound composes (numerics.md 2.1).
#pragma once

#include <algorithm>

#include "oracle/arithmetic.h"
#include "oracle/format.h"

namespace assay {

inline constexpr double kU32 = 0x1p-24;            ///< fp32 unit roundoff
inline constexpr double kMinNormal32 = 0x1p-126;
inline constexpr double kMinSubnormal32 = 0x1p-149;
inline constexpr double kMax32 = 0x1.fffffep127;

/// n u / (1 - n u): n fp32 roundings in any order. +inf where the bound does not exist.
inline double gamma32(double n) {
  const double nu = n * kU32;
  return nu < 1 ? nu / (1 - nu) : __builtin_inf();
}

/// Error of a sum of `terms` products, relative to the sum of their magnitudes, and an absolute floor, for any order of
/// blocks: |err| <= relative * sum |t_i| + absolute.
struct AccumulationError {
  double relative = 0;
  double absolute = 0;
};

/// D0 of numerics.md 2.1. `blocks(k)` gives how many blocks of k consecutive products hold a non-zero one.
///   block FMA: blocks ((K + 1) 2^-F + 2^-ob): K aligned products and the accumulator are truncated, then the result.
///   scalar:    gamma_terms.
/// The floor: every block (scalar: every operation) may round in the subnormal range.
template <class Blocks>
AccumulationError accumulation_error(Accumulate kind, double terms, const Blocks& blocks) {
  // A block adds unit (A + err) to the error, so n blocks give ((1 + unit)^n - 1) A <= x (1 + x) A with x = n unit <= 1;
  // (1 + 2^-8) covers the error's own share in the exponents, and fp64. From x = 0.25 on nothing is promised.
  const auto block_fma = [&](int k, double unit) {
    const double count = blocks(k);
    const double grown = count * unit;
    return AccumulationError{grown < 0.25 ? grown * (1 + grown) * (1 + 0x1p-8) : __builtin_inf(),
                             2 * count * kMinSubnormal32};
  };
  const AccumulationError scalar{gamma32(terms), terms * kMinSubnormal32};
  const AccumulationError ampere = block_fma(8, 9 * 0x1p-24 + 0x1p-23);
  const AccumulationError hopper = block_fma(16, 17 * 0x1p-25 + 0x1p-23);
  switch (kind) {
    case Accumulate::kFp32: return scalar;
    case Accumulate::kBlockAmpere: return ampere;
    case Accumulate::kBlockHopper: return hopper;
    case Accumulate::kUnknown: break;
  }
  return {std::max({scalar.relative, ampere.relative, hopper.relative}),
          std::max({scalar.absolute, ampere.absolute, hopper.absolute})};
}

}  // namespace assay
