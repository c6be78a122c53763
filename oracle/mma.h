// The block-FMA model of the tensor cores: one output element's chain of blocks, bit for bit, as data per architecture.
#pragma once

#include <cstdint>

#include "oracle/format.h"

namespace assay {

/// Parameters of one instruction family (numerics.md 1.1). One block: every product and the accumulator are aligned to the
/// largest exponent E of the block, truncated to multiples of 2^(E - alignment_bits), added exactly, then rounded toward zero
/// to `output_bits` fraction bits (fp32 accumulator) or to nearest even (fp16 accumulator).
struct MmaModel {
  int block_k;         ///< products per block
  int alignment_bits;  ///< F
  int output_bits;     ///< fraction bits kept of an fp32 accumulator
};

enum class MmaArch : std::uint8_t { kAmpere, kAda, kHopper };
/// The model for an input format on an architecture. Aborts for a pair the hardware does not have.
const MmaModel& mma_model(MmaArch arch, Format input);

/// c + sum_k a[k * stride_a] * b[k * stride_b], as a chain of blocks in order of k; a short last block is padded with zeros.
/// a and b hold values of `input` widened to fp32 (exact). fp32 accumulator in, fp32 out. NaN results are 0x7fffffff.
float mma_dot(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a, const float* b,
              std::int64_t stride_b, float c);

/// The same with an fp16 accumulator (codes in and out).
std::uint16_t mma_dot_fp16(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a, const float* b,
                           std::int64_t stride_b, std::uint16_t c);

}  // namespace assay
