// Decodes runs of elements by their bits; other formats by the general decoder.
#include "oracle/ops/attention/decode_run.h"

#include <algorithm>
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

// Exponent and fraction move to their places in fp32, where the value lacks a factor 2^(127 - bias); a subnormal number
// becomes a subnormal one, and the product is exact. What the format calls infinite or NaN gets all ones in the
// exponent.

ASSAY_HOT void decode_bf16(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{code_at<std::uint16_t>(codes + 2 * i)} << 16));
}

ASSAY_HOT void decode_fp16(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = code_at<std::uint16_t>(codes + 2 * i);
    const float scaled = std::bit_cast<float>((code & 0x7fffU) << 13) * 0x1p112F;
    const std::uint32_t special = (code & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;
    out[i] = static_cast<double>(
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | (code & 0x8000U) << 16));
  }
}

ASSAY_HOT void decode_fp32(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(code_at<float>(codes + 4 * i));
}

ASSAY_HOT void decode_e4m3(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto code = std::to_integer<std::uint32_t>(codes[i]);
    const float scaled = std::bit_cast<float>((code & 0x7fU) << 20) * 0x1p120F;
    const std::uint32_t special = (code & 0x7fU) == 0x7fU ? 0x7f800000U : 0U;
    out[i] = static_cast<double>(
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | (code & 0x80U) << 24));
  }
}

ASSAY_HOT void decode_e5m2(const std::byte* codes, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto code = std::to_integer<std::uint32_t>(codes[i]);
    const float scaled = std::bit_cast<float>((code & 0x7fU) << 21) * 0x1p112F;
    const std::uint32_t special = (code & 0x7cU) == 0x7cU ? 0x7f800000U : 0U;
    out[i] = static_cast<double>(
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | (code & 0x80U) << 24));
  }
}

void decode_contiguous(Format format, const std::byte* codes, std::size_t n, double* out) {
  switch (format) {
    case Format::kBf16: return decode_bf16(codes, n, out);
    case Format::kFp16: return decode_fp16(codes, n, out);
    case Format::kFp32: return decode_fp32(codes, n, out);
    case Format::kE4m3: return decode_e4m3(codes, n, out);
    case Format::kE5m2: return decode_e5m2(codes, n, out);
    default:
      for (std::size_t i = 0; i < n; ++i)
        out[i] = decode(format, load_code(codes, format, static_cast<std::int64_t>(i)));
  }
}

template <std::size_t kBytes>
void gather(const std::byte* from, std::size_t step, std::size_t n, std::byte* to) {
  for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * kBytes, from + i * step * kBytes, kBytes);
}

}  // namespace

void decode_run(const TensorView& t, std::int64_t first, std::int64_t stride, std::span<double> out) {
  const auto bytes = static_cast<std::size_t>(bytes_per_element(t.format()));
  const std::byte* codes = t.storage + static_cast<std::size_t>(first) * bytes;
  if (stride == 1) return decode_contiguous(t.format(), codes, out.size(), out.data());
  constexpr std::size_t kRun = 128;
  std::array<std::byte, kRun * 8> run;
  const auto step = static_cast<std::size_t>(stride);
  for (std::size_t at = 0; at < out.size(); at += kRun) {
    const std::size_t n = std::min(kRun, out.size() - at);
    const std::byte* from = codes + at * step * bytes;
    switch (bytes) {
      case 1: gather<1>(from, step, n, run.data()); break;
      case 2: gather<2>(from, step, n, run.data()); break;
      case 4: gather<4>(from, step, n, run.data()); break;
      default: gather<8>(from, step, n, run.data());
    }
    decode_contiguous(t.format(), run.data(), n, out.data() + at);
  }
}

}  // namespace assay
