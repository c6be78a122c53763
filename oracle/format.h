// Number formats as one table: decode, encode, neighbours, ulp, special values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace assay {

/// Element types of tensors. The number formats are those of IEEE 754 and OCP MX; the last two hold indices and masks.
enum class Format : std::uint8_t { kFp64, kFp32, kTf32, kFp16, kBf16, kE4m3, kE5m2, kE8m0, kInt32, kUint8 };
inline constexpr int kFormatCount = 10;

/// What the all-ones exponent means.
enum class Specials : std::uint8_t {
  kIeee,       ///< infinities and NaNs (fp64, fp32, tf32, fp16, bf16, e5m2)
  kNanOnly,    ///< e4m3fn: S.1111.111 is NaN, no infinity, the rest of that binade is finite
  kE8m0,       ///< unsigned power of two, 0xff is NaN, no zero
  kInteger,    ///< not a floating-point format
};

struct FormatInfo {
  Format id;
  std::string_view name;              ///< as in case lines: fp64 fp32 tf32 fp16 bf16 e4m3 e5m2 e8m0 i32 u8
  std::string_view safetensors_name;  ///< F64 F32 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I32 U8
  Specials specials;
  int storage_bits;   ///< tf32 is stored in 32 bits with the low 13 bits zero
  int exponent_bits;
  int fraction_bits;  ///< stored fraction bits, without the implicit one
  int min_exponent;   ///< exponent of the smallest normal number
  int max_exponent;   ///< exponent of the largest finite number
  double max_finite;
  double min_normal;
  double min_subnormal;   ///< equals min_normal for e8m0
  double unit_roundoff;   ///< 2^-(fraction_bits + 1)
};

inline constexpr std::array<FormatInfo, kFormatCount> kFormats = {{
    {Format::kFp64, "fp64", "F64", Specials::kIeee, 64, 11, 52, -1022, 1023, 0x1.fffffffffffffp1023, 0x1p-1022,
     0x1p-1074, 0x1p-53},
    {Format::kFp32, "fp32", "F32", Specials::kIeee, 32, 8, 23, -126, 127, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-24},
    {Format::kTf32, "tf32", "F32", Specials::kIeee, 32, 8, 10, -126, 127, 0x1.ffcp127, 0x1p-126, 0x1p-136, 0x1p-11},
    {Format::kFp16, "fp16", "F16", Specials::kIeee, 16, 5, 10, -14, 15, 65504.0, 0x1p-14, 0x1p-24, 0x1p-11},
    {Format::kBf16, "bf16", "BF16", Specials::kIeee, 16, 8, 7, -126, 127, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-8},
    {Format::kE4m3, "e4m3", "F8_E4M3", Specials::kNanOnly, 8, 4, 3, -6, 8, 448.0, 0x1p-6, 0x1p-9, 0x1p-4},
    {Format::kE5m2, "e5m2", "F8_E5M2", Specials::kIeee, 8, 5, 2, -14, 15, 57344.0, 0x1p-14, 0x1p-16, 0x1p-3},
    {Format::kE8m0, "e8m0", "F8_E8M0", Specials::kE8m0, 8, 8, 0, -127, 127, 0x1p127, 0x1p-127, 0x1p-127, 0x1p-1},
    // Integers: exact up to max_finite, spacing 1; the half unit of rounding is absolute.
    {Format::kInt32, "i32", "I32", Specials::kInteger, 32, 0, 0, 0, 30, 2147483647.0, 1.0, 1.0, 0.5},
    {Format::kUint8, "u8", "U8", Specials::kInteger, 8, 0, 0, 0, 7, 255.0, 1.0, 1.0, 0.5},
}};

inline const FormatInfo& info(Format format) { return kFormats[static_cast<std::size_t>(format)]; }
std::optional<Format> format_from_name(std::string_view name);
std::optional<Format> format_from_safetensors_name(std::string_view name);
inline int bytes_per_element(Format format) { return info(format).storage_bits / 8; }

enum class Rounding : std::uint8_t { kNearestEven, kTowardZero };
/// What a finite value beyond the largest finite number becomes. kIeee: infinity where the format has one, else NaN
/// (as the format's own rounding says); kSaturate: the largest finite number. Infinities saturate too; NaN never does.
enum class Overflow : std::uint8_t { kIeee, kSaturate };

/// The exact value of a code; NaN for NaN codes. Every format here embeds in fp64. Bits above storage_bits are ignored.
double decode(Format format, std::uint64_t code);

/// The code of `value` rounded to the format. NaN gives the canonical quiet NaN. Subnormals are kept. Negative values and
/// zero in e8m0 give NaN. Integer formats round to nearest even and saturate.
std::uint64_t encode(Format format, double value, Rounding rounding = Rounding::kNearestEven,
                     Overflow overflow = Overflow::kIeee);

/// codes[i] = encode(format, values[i], kNearestEven, overflow).
void encode_all(Format format, std::span<const double> values, Overflow overflow, std::uint64_t* codes);

/// encode then decode.
double round_to(Format format, double value, Rounding rounding = Rounding::kNearestEven,
                Overflow overflow = Overflow::kIeee);

bool is_nan(Format format, std::uint64_t code);
bool is_infinite(Format format, std::uint64_t code);
bool is_finite(Format format, std::uint64_t code);
bool is_zero(Format format, std::uint64_t code);       ///< +0 and -0
bool is_subnormal(Format format, std::uint64_t code);  ///< non-zero and below min_normal
bool sign_bit(Format format, std::uint64_t code);

/// The neighbouring value's code towards +inf / -inf; from the largest finite number to infinity where there is one,
/// otherwise it stays. NaN stays. next_up(-min_subnormal) is -0.
std::uint64_t next_up(Format format, std::uint64_t code);
std::uint64_t next_down(Format format, std::uint64_t code);

/// The spacing of the format's numbers in the binade of `value` (the lower binade's spacing is used for exact powers of
/// two: it is the gap above |value|). For |value| < min_normal it is min_subnormal. Infinite or NaN gives NaN.
double ulp(Format format, double value);

/// Distance in representable numbers between two non-NaN codes of one format (+0 and -0 are 0 apart).
std::int64_t ulp_distance(Format format, std::uint64_t a, std::uint64_t b);

}  // namespace assay
