// The block-FMA model of the tensor cores: chains of blocks, bit for bit, as data per architecture.
#pragma once

#include <cstdint>

#include "oracle/format.h"

namespace assay {

/// Parameters of one instruction family (numerics.md 1.1). One block: every product and the accumulator are aligned to
/// the largest exponent E of the block, truncated to multiples of 2^(E - alignment_bits), added exactly, then rounded
/// toward zero to `output_bits` fraction bits (fp32 accumulator) or to nearest even (fp16 accumulator). A product's
/// exponent is the sum of its operands' exponents (its significand may be in [1, 4)); subnormals have the exponent of
/// the smallest normal number.
struct MmaModel {
  int block_k;          ///< products per block, at most 32
  int alignment_bits;   ///< F
  int output_bits;      ///< fraction bits kept of an fp32 accumulator
  int lowest_exponent;  ///< of a block: terms below align to it
};

enum class MmaArch : std::uint8_t { kAmpere, kAda, kHopper };
/// The model for an input format on an architecture. Aborts for a pair the hardware does not have.
const MmaModel& mma_model(MmaArch arch, Format input);

/// c + sum_k a[k * stride_a] * b[k * stride_b], as a chain of blocks in order of k; a short last block is padded with
/// zeros. a and b hold values of `input` widened to fp32 (exact). fp32 accumulator in, fp32 out. NaN results are
/// 0x7fffffff, a zero result is +0. k <= 0 gives c.
float mma_dot(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a, const float* b,
              std::int64_t stride_b, float c);

/// The same with an fp16 accumulator (codes in and out). NaN results are 0x7fff, a result that rounds to zero is +0.
std::uint16_t mma_dot_fp16(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a,
                           const float* b, std::int64_t stride_b, std::uint16_t c);

/// A matrix operand: element (i, j) is data[i * row_stride + j * column_stride], widened to fp32.
struct MmaOperand {
  const float* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// c[i * stride_c + j] = mma_dot of row i of a (m x k) and column j of b (k x n) started from c[i * stride_c + j], for
/// all i < m and j < n; the same bits as mma_dot, about six times as fast. c must not overlap a or b.
void mma_tile(const MmaModel& model, Format input, int m, int n, int k, MmaOperand a, MmaOperand b, float* c,
              std::int64_t stride_c);

}  // namespace assay
