// The block-FMA model computed with exact floating-point scaling and truncating conversions to integers.
#include "oracle/mma.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "oracle/simd.h"

namespace assay {
namespace {

// Sources and the device vectors each row is checked with: numerics.md 1.1. An m16n8k16 instruction of Ampere or Ada is
// two blocks, of Hopper one. fp8 on Hopper is wgmma's.
struct MmaRow {
  MmaArch arch;
  Format input;
  MmaModel model;
};
constexpr int kNoLowest = -252;  // no product of two bf16 or tf32 numbers has a smaller exponent
constexpr MmaRow kModels[] = {
    {MmaArch::kAmpere, Format::kFp16, {8, 24, 23, kNoLowest}},
    {MmaArch::kAmpere, Format::kBf16, {8, 24, 23, kNoLowest}},
    {MmaArch::kAmpere, Format::kTf32, {4, 24, 23, kNoLowest}},
    {MmaArch::kAda, Format::kFp16, {8, 24, 23, kNoLowest}},
    {MmaArch::kAda, Format::kBf16, {8, 24, 23, kNoLowest}},
    {MmaArch::kAda, Format::kTf32, {4, 24, 23, kNoLowest}},
    {MmaArch::kAda, Format::kE4m3, {16, 13, 13, kNoLowest}},
    {MmaArch::kAda, Format::kE5m2, {16, 13, 13, kNoLowest}},
    {MmaArch::kHopper, Format::kFp16, {16, 25, 23, -133}},
    {MmaArch::kHopper, Format::kBf16, {16, 25, 23, -133}},
    {MmaArch::kHopper, Format::kTf32, {8, 25, 23, -133}},
    {MmaArch::kHopper, Format::kE4m3, {32, 13, 13, kNoLowest}},
    {MmaArch::kHopper, Format::kE5m2, {32, 13, 13, kNoLowest}},
};

constexpr int kMaxBlock = 32;
constexpr int kColumns = 64;  // columns of b that one pass of mma_tile works on; fewer keep clang 14 from vectorising

// Exponents as 16-bit numbers. The codes of zero and of inf/NaN keep their meaning in sums of two: a sum with a zero
// factor of finite numbers stays below kNoTerm, one with an inf or NaN above kLargestSum.
constexpr std::int16_t kZeroExponent = -10000;
constexpr std::int16_t kSpecialExponent = 12000;
constexpr int kNoTerm = -5000;
constexpr int kLargestSum = 254;
// Block exponents for which the work can be done in fp32: products, quanta 2^(E - F) and results are normal there, or
// are so small that truncation removes them however they are rounded.
constexpr int kFloatLow = -100;
constexpr int kFloatHigh = 100;

constexpr std::uint32_t kNanBits = 0x7fffffff;

std::int16_t exponent_of(float x, int min_exponent) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const int field = static_cast<int>((bits >> 23) & 0xff);
  int e = std::max(field - 127, min_exponent);
  e = field == 255 ? kSpecialExponent : e;
  e = (bits << 1) == 0 ? kZeroExponent : e;
  return static_cast<std::int16_t>(e);
}

double exp2_double(int e) {  // for normal results
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}

float exp2_float(int e) {  // for normal results
  return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
}

// fp32 with `bits` fraction bits, rounded toward zero. For |v| < 2^-126 the quantum stays 2^(-126 - bits).
float truncate_to_accumulator(double v, int bits) {
  const double magnitude = v < 0 ? -v : v;
  if (magnitude >= 0x1p128) return v < 0 ? -__builtin_inff() : __builtin_inff();
  if (magnitude >= 0x1p-126) {
    const std::uint64_t mask = ~std::uint64_t{0} << (52 - bits);
    return static_cast<float>(std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) & mask));
  }
  const auto units = static_cast<std::int64_t>(v * exp2_double(126 + bits));
  return static_cast<float>(static_cast<double>(units) * exp2_double(-126 - bits));
}

/// The exact sum of one block: value units * 2^quantum, or a special value.
struct BlockSum {
  enum Kind : std::uint8_t { kFinite, kNan, kPlusInfinity, kMinusInfinity } kind;
  double value;
};

// Any NaN, inf * 0 or inf - inf gives NaN; else an infinite term gives its infinity.
BlockSum special_sum(const MmaModel& model, const float* a, const float* b, float c) {
  bool plus = false;
  bool minus = false;
  bool nan = false;
  const auto see = [&](double term) {
    nan |= term != term;
    plus |= term == __builtin_inf();
    minus |= term == -__builtin_inf();
  };
  see(static_cast<double>(c));
  for (int t = 0; t < model.block_k; ++t) see(static_cast<double>(a[t]) * static_cast<double>(b[t]));
  if (nan || (plus && minus)) return {BlockSum::kNan, 0};
  return {plus ? BlockSum::kPlusInfinity : BlockSum::kMinusInfinity, 0};
}

// One block of any exponents. Products of two fp32 numbers of at most 11 significant bits are exact in fp64, and
// scaling them by a power of two so that the quantum becomes 1 is exact there, so the conversion to an integer is the
// truncation. A term is below 4 * 2^F <= 2^27, their sum below 2^33.
[[gnu::always_inline]] inline BlockSum block_sum(const MmaModel& model, int min_exponent, int c_min_exponent,
                                                 const float* a, const float* b, float c) {
  int e_max = exponent_of(c, c_min_exponent);
  for (int t = 0; t < model.block_k; ++t) {
    e_max = std::max(e_max, exponent_of(a[t], min_exponent) + exponent_of(b[t], min_exponent));
  }
  if (e_max > kLargestSum) return special_sum(model, a, b, c);
  if (e_max < kNoTerm) return {BlockSum::kFinite, 0};
  e_max = std::max(e_max, model.lowest_exponent);
  const double to_units = exp2_double(model.alignment_bits - e_max);
  std::int64_t sum = static_cast<std::int32_t>(static_cast<double>(c) * to_units);
  for (int t = 0; t < model.block_k; ++t) {
    sum += static_cast<std::int32_t>(static_cast<double>(a[t]) * static_cast<double>(b[t]) * to_units);
  }
  return {BlockSum::kFinite, static_cast<double>(sum) * exp2_double(e_max - model.alignment_bits)};
}

float finish(const MmaModel& model, const BlockSum& s) {
  switch (s.kind) {
    case BlockSum::kFinite: return truncate_to_accumulator(s.value, model.output_bits);
    case BlockSum::kNan: return std::bit_cast<float>(kNanBits);
    case BlockSum::kPlusInfinity: return __builtin_inff();
    case BlockSum::kMinusInfinity: return -__builtin_inff();
  }
  return 0;
}

std::uint16_t finish_fp16(const BlockSum& s) {
  switch (s.kind) {
    case BlockSum::kFinite: {
      const auto code = static_cast<std::uint16_t>(encode(Format::kFp16, s.value));
      return code == 0x8000 ? std::uint16_t{0} : code;
    }
    case BlockSum::kNan: return 0x7fff;
    case BlockSum::kPlusInfinity: return 0x7c00;
    case BlockSum::kMinusInfinity: return 0xfc00;
  }
  return 0;
}

struct Block {
  alignas(64) float a[kMaxBlock];
  alignas(64) float b[kMaxBlock];
};

void gather(float* to, const float* from, std::int64_t stride, int count, int block_k) {
  for (int t = 0; t < count; ++t) to[t] = from[t * stride];
  for (int t = count; t < block_k; ++t) to[t] = 0;
}

// A block of rows of b, kColumns wide, with zeros beyond the matrix.
struct Panel {
  alignas(64) float value[kMaxBlock][kColumns];
  alignas(64) std::int16_t exponent[kMaxBlock][kColumns];
};

void load_panel(Panel& panel, const MmaOperand& b, int first_row, int rows, int block_k, int first_column, int columns,
                int min_exponent) {
  for (int t = 0; t < block_k; ++t) {
    const float* row = b.data + (first_row + t) * b.row_stride + first_column * b.column_stride;
    for (int j = 0; j < kColumns; ++j) panel.value[t][j] = t < rows && j < columns ? row[j * b.column_stride] : 0.0F;
    for (int j = 0; j < kColumns; ++j) panel.exponent[t][j] = exponent_of(panel.value[t][j], min_exponent);
  }
}

// One block of one row of a against a panel, in fp32 lanes; false, with c untouched, if some exponent forbids it.
// Every step is exact but the truncations: products have at most 22 significant bits, scaling is by powers of two.
// Eight products sum to less than 2^30 units, so int32 holds each `sum`; int32 halves add up in fp64.
[[gnu::always_inline]] inline bool block_row(const MmaModel& model, const Panel& panel, const float* a,
                                             const std::int16_t* a_exponent, float* c) {
  std::int16_t e[kColumns];
  for (int j = 0; j < kColumns; ++j) e[j] = exponent_of(c[j], -126);
  for (int t = 0; t < model.block_k; ++t) {
    for (int j = 0; j < kColumns; ++j) {
      e[j] = std::max(e[j], static_cast<std::int16_t>(a_exponent[t] + panel.exponent[t][j]));
    }
  }
  std::int16_t low = kFloatLow;
  std::int16_t high = kFloatLow;
  for (int j = 0; j < kColumns; ++j) {
    high = std::max(high, e[j]);
    e[j] = e[j] < kNoTerm ? std::int16_t{kFloatLow} : e[j];  // all terms zero: any exponent gives 0
    low = std::min(low, e[j]);
  }
  if (low < kFloatLow || high > kFloatHigh) return false;
  float to_units[kColumns];
  for (int j = 0; j < kColumns; ++j) to_units[j] = exp2_float(model.alignment_bits - e[j]);
  double total[kColumns];
  for (int j = 0; j < kColumns; ++j) total[j] = static_cast<double>(static_cast<std::int32_t>(c[j] * to_units[j]));
  for (int first = 0; first < model.block_k; first += 8) {
    std::int32_t sum[kColumns] = {};
    const int last = std::min(first + 8, model.block_k);
    for (int t = first; t < last; ++t) {
      for (int j = 0; j < kColumns; ++j) {
        sum[j] += static_cast<std::int32_t>(a[t] * panel.value[t][j] * to_units[j]);
      }
    }
    for (int j = 0; j < kColumns; ++j) total[j] += static_cast<double>(sum[j]);
  }
  const std::uint64_t mask = ~std::uint64_t{0} << (52 - model.output_bits);
  for (int j = 0; j < kColumns; ++j) {
    const std::uint64_t kept = std::bit_cast<std::uint64_t>(total[j]) & mask;
    c[j] = static_cast<float>(std::bit_cast<double>(kept)) * exp2_float(e[j] - model.alignment_bits);
  }
  return true;
}

}  // namespace

const MmaModel& mma_model(MmaArch arch, Format input) {
  for (const MmaRow& row : kModels) {
    if (row.arch == arch && row.input == input) return row.model;
  }
  std::fprintf(stderr, "mma_model: architecture %d has no %s\n", static_cast<int>(arch), info(input).name.data());
  std::abort();
}

ASSAY_HOT float mma_dot(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a,
                        const float* b, std::int64_t stride_b, float c) {
  const int min_exponent = info(input).min_exponent;
  Block block;
  for (int t = 0; t < k; t += model.block_k) {
    const int count = std::min(model.block_k, k - t);
    gather(block.a, a + t * stride_a, stride_a, count, model.block_k);
    gather(block.b, b + t * stride_b, stride_b, count, model.block_k);
    c = finish(model, block_sum(model, min_exponent, -126, block.a, block.b, c));
  }
  return c;
}

std::uint16_t mma_dot_fp16(const MmaModel& model, Format input, int k, const float* a, std::int64_t stride_a,
                           const float* b, std::int64_t stride_b, std::uint16_t c) {
  const int min_exponent = info(input).min_exponent;
  Block block;
  for (int t = 0; t < k; t += model.block_k) {
    const int count = std::min(model.block_k, k - t);
    gather(block.a, a + t * stride_a, stride_a, count, model.block_k);
    gather(block.b, b + t * stride_b, stride_b, count, model.block_k);
    const auto accumulator = static_cast<float>(decode(Format::kFp16, c));
    c = finish_fp16(block_sum(model, min_exponent, info(Format::kFp16).min_exponent, block.a, block.b, accumulator));
  }
  return c;
}

ASSAY_HOT void mma_tile(const MmaModel& model, Format input, int m, int n, int k, MmaOperand a, MmaOperand b, float* c,
                        std::int64_t stride_c) {
  const int min_exponent = info(input).min_exponent;
  Panel panel;
  Block block;
  alignas(64) std::int16_t a_exponent[kMaxBlock];
  alignas(64) float accumulator[kColumns] = {};
  for (int j = 0; j < n; j += kColumns) {
    const int columns = std::min(kColumns, n - j);
    std::fill_n(accumulator, kColumns, 0.0F);
    for (int t = 0; t < k; t += model.block_k) {
      const int count = std::min(model.block_k, k - t);
      load_panel(panel, b, t, count, model.block_k, j, columns, min_exponent);
      for (int i = 0; i < m; ++i) {
        gather(block.a, a.data + i * a.row_stride + t * a.column_stride, a.column_stride, count, model.block_k);
        for (int u = 0; u < model.block_k; ++u) a_exponent[u] = exponent_of(block.a[u], min_exponent);
        float* row = c + i * stride_c + j;
        std::copy_n(row, columns, accumulator);
        if (!block_row(model, panel, block.a, a_exponent, accumulator)) {
          for (int v = 0; v < columns; ++v) {
            for (int u = 0; u < model.block_k; ++u) block.b[u] = panel.value[u][v];
            accumulator[v] = finish(model, block_sum(model, min_exponent, -126, block.a, block.b, accumulator[v]));
          }
        }
        std::copy_n(accumulator, columns, row);
      }
    }
  }
}

}  // namespace assay
