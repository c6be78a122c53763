// Tensor-core instructions of this device against the block-FMA model, bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/device/instructions.h"

namespace assay {

/// What the operands of a probe look like.
enum class MmaOperands : std::uint8_t {
  kNear,        ///< exponents within 2^+-3
  kWide,        ///< any finite code
  kFarAbove,    ///< C above every product, by up to 2^34
  kFarBelow,    ///< C below every product, by up to 2^60
  kSubnormal,   ///< subnormal and smallest normal numbers in A and C
  kVanishing,   ///< sums around half the smallest subnormal of the accumulator
  kCancelling,  ///< products in pairs of opposite sign
  kSpecial,     ///< any code: infinities, NaN, zeros among the rest
};
inline constexpr MmaOperands kMmaOperands[] = {
    MmaOperands::kNear,      MmaOperands::kWide,      MmaOperands::kFarAbove,   MmaOperands::kFarBelow,
    MmaOperands::kSubnormal, MmaOperands::kVanishing, MmaOperands::kCancelling, MmaOperands::kSpecial};
std::string_view name_of(MmaOperands operands);

struct MmaProbe {
  MmaInstruction instruction;
  MmaOperands operands = MmaOperands::kNear;
  std::int64_t elements = 0, different = 0;
  std::string first;  ///< the first difference: operands, device and model as codes
};

/// At least `elements` elements of every instruction and kind of operands; instructions that the device lacks are left
/// out. Throws EnvironmentError without a Hopper device: the model's data are those of Hopper.
std::vector<MmaProbe> probe_mma(std::int64_t elements, std::uint64_t seed);

}  // namespace assay
