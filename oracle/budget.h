// Unit roundoffs, gamma_n and the accumulation errors that every op's bound composes (numerics.md 2.1).
#pragma once

#include <algorithm>

#include "oracle/arithmetic.h"
#include "oracle/exp64.h"
#include "oracle/format.h"
#include "oracle/mma.h"

namespace assay {

inline constexpr double kU32 = 0x1p-24;  ///< fp32 unit roundoff
inline constexpr double kMinNormal32 = 0x1p-126;
inline constexpr double kMinSubnormal32 = 0x1p-149;
inline constexpr double kMax32 = 0x1.fffffep127;

/// n u / (1 - n u): n fp32 roundings in any order. +inf where the bound does not exist.
inline double gamma32(double n) {
  const double nu = n * kU32;
  return nu < 1 ? nu / (1 - nu) : __builtin_inf();
}

/// Error of a sum of products, relative to the sum of their magnitudes, and an absolute floor, for any order of blocks:
/// |err| <= relative * sum |t_i| + absolute + alignment * sum over blocks of the largest 2^(e(a) + e(b)) that a
/// subnormal operand raised, since a subnormal number is aligned as if it had the exponent of the smallest normal one.
struct AccumulationError {
  double relative = 0;
  double absolute = 0;
  double alignment = 0;
  double alignments = 0;  ///< the number of blocks times `alignment`
};

/// D0 of numerics.md 2.1 for one chain of `blocks` instructions of the model:
///   err_{b+1} <= err_b + (K + 1) 2^-F (A + err_b) + 2^-ob (A + err_b) (1 + (K + 1) 2^-F),
/// since K aligned products and the accumulator are truncated below 2^(E - F) with 2^E <= A + err, and the result is.
/// So err <= ((1 + unit)^blocks - 1) A <= (e^x - 1) A with x = blocks unit. The floor: the accumulator's quantum below
/// 2^-126.
inline AccumulationError block_chain(const MmaModel& model, double blocks) {
  const double quantum = exp2_64(-model.alignment_bits), kept = exp2_64(-model.output_bits);
  const double aligned = (model.block_k + 1) * quantum;
  const double x = blocks * (aligned + kept + aligned * kept);
  const double grown = x <= 0.5 ? x * (1 + 0.6 * x) : exp64(x) - 1;
  return {grown * (1 + 0x1p-40), 2 * blocks * kMinNormal32 * kept * (1 + grown), aligned * (1 + grown),
          blocks * aligned * (1 + grown)};
}

/// The architecture's model for operands of a format. fp32 operands go through the tensor cores as tf32; 8-bit ones
/// exist from Ada on.
inline const MmaModel& block_model(Accumulate kind, Format operands) {
  const bool narrow = info(operands).storage_bits == 8;
  const Format input = operands == Format::kFp32 ? Format::kTf32 : operands;
  if (kind == Accumulate::kBlockHopper) return mma_model(MmaArch::kHopper, input);
  return mma_model(narrow ? MmaArch::kAda : MmaArch::kAmpere, input);
}

/// The worst over the family `kind` of a sum of `terms` products of `operands`. `blocks(k)` gives how many blocks of k
/// consecutive products hold a non-zero one.
template <class Blocks>
AccumulationError accumulation_error(Accumulate kind, Format operands, double terms, const Blocks& blocks) {
  const auto block_fma = [&](Accumulate arch) {
    const MmaModel& model = block_model(arch, operands);
    return block_chain(model, blocks(model.block_k));
  };
  const AccumulationError scalar{gamma32(terms), terms * kMinSubnormal32, 0, 0};
  if (kind == Accumulate::kFp32) return scalar;
  if (kind != Accumulate::kUnknown) return block_fma(kind);
  const AccumulationError ampere = block_fma(Accumulate::kBlockAmpere), hopper = block_fma(Accumulate::kBlockHopper);
  return {std::max({scalar.relative, ampere.relative, hopper.relative}),
          std::max({scalar.absolute, ampere.absolute, hopper.absolute}), std::max(ampere.alignment, hopper.alignment),
          std::max(ampere.alignments, hopper.alignments)};
}

}  // namespace assay
