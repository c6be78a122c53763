// Single instructions of the device under test: one tensor-core product per tile, one scalar approximation per number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/mma_instruction.h"

namespace assay {

/// What the CUDA runtime says about the device that runs here.
struct DeviceFacts {
  std::string name;             ///< "NVIDIA H200"
  int driver = 0, runtime = 0;  ///< as CUDA numbers them: 13000 is 13.0
  int major = 0, minor = 0;     ///< compute capability
};
/// Throws EnvironmentError if there is no device or no driver.
DeviceFacts device_facts();

/// Every family that this build has code for.
std::span<const MmaInstruction> mma_instructions();

/// a [tiles][rows][32 bytes], b [tiles][8][32 bytes] (column after column), c [tiles][rows][8] codes of the
/// accumulator; returns d like c, every tile by one instruction. Throws EnvironmentError if the device cannot.
std::vector<std::uint32_t> run_mma(const MmaInstruction& instruction, std::span<const std::byte> a,
                                   std::span<const std::byte> b, std::span<const std::uint32_t> c);

enum class Unary : std::uint8_t { kEx2, kEx2Ftz, kLg2, kRcp, kRsqrt, kTanh };
inline constexpr Unary kUnaries[] = {Unary::kEx2, Unary::kEx2Ftz, Unary::kLg2,
                                     Unary::kRcp, Unary::kRsqrt,  Unary::kTanh};
/// "ex2.approx.f32"
std::string_view unary_name(Unary f);

/// The results' codes for the `count` fp32 codes from `first` on. Throws EnvironmentError if the device cannot.
void run_unary(Unary f, std::uint32_t first, std::span<std::uint32_t> results);

}  // namespace assay
