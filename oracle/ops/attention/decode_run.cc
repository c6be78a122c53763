// Decodes runs of bf16, fp16 and fp32 by their bits and of 8-bit formats by a table; other formats by the general decoder.
#include "oracle/ops/attention/decode_run.h"

#include <array>
#include <bit>
#include <cstring>

#include "oracle/simd.h"

namespace assay {
namespace {

template <class Code>
Code code_at(const std::byte* at) {
  Code code;
  std::memcpy(&code, at, sizeof code);
  return code;
}

ASSAY_HOT void decode_bf16(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{code_at<std::uint16_t>(codes + 2 * i)} << 16));
}

// Exponent and fraction move to their places in fp32, where the value lacks a factor 2^(127 - 15); a subnormal number becomes a
// subnormal one, and the product is exact. The exponent of infinities and NaNs arrives at 16 and is set to all ones.
ASSAY_HOT void decode_fp16(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = code_at<std::uint16_t>(codes + 2 * i);
    const std::uint32_t magnitude = (code & 0x7fffU) << 13;
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t bits = (code & 0x7c00U) == 0x7c00U ? (magnitude | 0x7f800000U) : scaled;
    out[i] = static_cast<double>(std::bit_cast<float>(bits | (code & 0x8000U) << 16));
  }
}

ASSAY_HOT void decode_fp32(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(code_at<float>(codes + 4 * i));
}

std::array<double, 256> table_of(Format format) {
  std::array<double, 256> table{};
  for (std::size_t code = 0; code < table.size(); ++code) table[code] = decode(format, code);
  return table;
}

void decode_8_bits(Format format, const std::byte* codes, std::size_t n, double* out) {
  static const std::array<double, 256> e4m3 = table_of(Format::kE4m3), e5m2 = table_of(Format::kE5m2);
  const std::array<double, 256>& table = format == Format::kE4m3 ? e4m3 : e5m2;
  for (std::size_t i = 0; i < n; ++i) out[i] = table[std::to_integer<std::size_t>(codes[i])];
}

}  // namespace

void decode_run(const TensorView& t, std::int64_t first, std::int64_t stride, std::span<double> out) {
  if (stride == 1) {
    const std::byte* codes = t.storage + first * bytes_per_element(t.format());
    switch (t.format()) {
      case Format::kBf16: return decode_bf16(codes, out.size(), out.data());
      case Format::kFp16: return decode_fp16(codes, out.size(), out.data());
      case Format::kFp32: return decode_fp32(codes, out.size(), out.data());
      case Format::kE4m3:
      case Format::kE5m2: return decode_8_bits(t.format(), codes, out.size(), out.data());
      default: break;
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = t.value(first + static_cast<std::int64_t>(i) * stride);
}

}  // namespace assay
