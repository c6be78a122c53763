// Single tensor-core instructions, and what the block-FMA model says that one gives.
#pragma once

#include <cstdint>
#include <string>

#include "oracle/format.h"

namespace assay {

enum class TensorCore : std::uint8_t { kMmaSync, kWgmma };

/// One instruction family: D = A B + C with 32 bytes of k.
struct MmaInstruction {
  TensorCore unit = TensorCore::kMmaSync;
  Format input = Format::kBf16;   ///< of A and B: bf16, fp16, tf32, e4m3, e5m2
  bool fp16_accumulator = false;  ///< of C and D; otherwise fp32
  int rows() const { return unit == TensorCore::kWgmma ? 64 : 16; }
  int k() const { return 32 / bytes_per_element(input); }
  std::string name() const;  ///< "mma.sync.m16n8k16.f32.bf16"
};
inline constexpr int kMmaColumns = 8;
inline constexpr int kMmaBytesOfK = 32;

/// What the model says that an instruction gives for one element: a[k], b[k] widened to fp32, codes of the accumulator.
///
/// Eight-bit mma.sync on Hopper is no tensor-core instruction of its own: the operands become fp16, the k indices with
/// bit 1 clear and then those with bit 1 set are two chained fp16 blocks from zero, and C is added last.
std::uint32_t modelled_mma(const MmaInstruction& instruction, const float* a, const float* b, std::uint32_t c);

}  // namespace assay
