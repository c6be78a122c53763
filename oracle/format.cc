// The format table, and decode, encode, neighbours and spacing computed on the bits of fp64.
#include "oracle/format.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace assay {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kSign64 = std::uint64_t{1} << 63;
constexpr std::uint64_t kInf64 = std::uint64_t{0x7ff} << 52;

constexpr double power_of_two(int exponent) {  // for normal results
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// A sign-magnitude format of at most 32 bits as constants: a code is the sign and a magnitude, and magnitudes of finite
// numbers count up with the value. kShift is the number of unused low bits of storage (13 in tf32).
template <Format id>
struct Layout {
  static constexpr const FormatInfo& kInfo = kFormats[static_cast<std::size_t>(id)];
  static constexpr int kE = kInfo.exponent_bits;
  static constexpr int kF = kInfo.fraction_bits;
  static constexpr int kShift = kInfo.storage_bits - 1 - kE - kF;
  static constexpr int kBias = 1 - kInfo.min_exponent;
  static constexpr int kDrop = 52 - kF;  // fraction bits of fp64 that the format lacks
  static constexpr std::uint64_t kSign = std::uint64_t{1} << (kInfo.storage_bits - 1);
  static constexpr std::uint64_t kMagnitudeMask = (std::uint64_t{1} << (kE + kF)) - 1;
  static constexpr bool kHasInfinity = kInfo.specials == Specials::kIeee;
  static constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kE) - 1) << kF;  // magnitude, if kHasInfinity
  static constexpr std::uint64_t kMax = kHasInfinity ? kInfinity - 1 : kMagnitudeMask - 1;
  // Quiet bit alone where there are several NaNs.
  static constexpr std::uint64_t kNanMagnitude =
      kHasInfinity ? kInfinity | (std::uint64_t{1} << (kF - 1)) : kMagnitudeMask;
  static constexpr std::uint64_t magnitude(std::uint64_t code) { return (code >> kShift) & kMagnitudeMask; }
};

// Exponent and fraction move to their places in fp64 and the exponent field is corrected by the difference of the
// biases. A subnormal code is given the exponent of the smallest normal number, whose implicit one is then subtracted
// exactly: no fp64 subnormal appears on the way (they are slow on some processors).
template <Format id>
double decode_float(std::uint64_t code) {
  using L = Layout<id>;
  const std::uint64_t magnitude = L::magnitude(code);
  const bool subnormal = magnitude < (std::uint64_t{1} << L::kF);
  const std::uint64_t rebias = static_cast<std::uint64_t>(1023 - L::kBias) + subnormal;
  const double value =
      std::bit_cast<double>((magnitude << L::kDrop) + (rebias << 52)) - (subnormal ? L::kInfo.min_normal : 0.0);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  if (magnitude > L::kMax) bits = (L::kHasInfinity && magnitude == L::kInfinity) ? kInf64 : kInf64 | (kInf64 >> 1);
  return std::bit_cast<double>(bits | ((code & L::kSign) ? kSign64 : 0));
}

template <Format id>
std::uint64_t encode_float(double value, Rounding rounding, Overflow overflow) {
  using L = Layout<id>;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t a = bits & ~kSign64;
  const std::uint64_t sign = (bits >> 63) * L::kSign;
  if (a > kInf64) return L::kNanMagnitude << L::kShift;
  const bool nearest = rounding == Rounding::kNearestEven;
  std::uint64_t magnitude;
  if (a >= std::bit_cast<std::uint64_t>(L::kInfo.min_normal)) {
    // Adding half a unit less one, plus the last kept bit, then dropping bits is round to nearest even; a carry out of
    // the fraction raises the exponent, as it should.
    const std::uint64_t half = (std::uint64_t{1} << (L::kDrop - 1)) - 1 + ((a >> L::kDrop) & 1);
    magnitude = ((a + (nearest ? half : 0)) >> L::kDrop) - (static_cast<std::uint64_t>(1023 - L::kBias) << L::kF);
  } else {
    // In units of the smallest subnormal the value is below 2^kF. Adding 2^52 units rounds it to nearest even.
    constexpr double kMagic = power_of_two(L::kInfo.min_exponent - L::kF + 52);
    constexpr double kToUnits = power_of_two(L::kF - L::kInfo.min_exponent);
    const double x = std::bit_cast<double>(a);
    magnitude = nearest ? std::bit_cast<std::uint64_t>(x + kMagic) - std::bit_cast<std::uint64_t>(kMagic)
                        : static_cast<std::uint64_t>(x * kToUnits);
  }
  if (magnitude > L::kMax) {
    // IEEE 754 7.4: rounding toward zero carries a finite overflow to the largest finite number.
    const bool to_max = overflow == Overflow::kSaturate || (!nearest && a != kInf64);
    magnitude = to_max ? L::kMax : (L::kHasInfinity ? L::kInfinity : L::kNanMagnitude);
  }
  return sign | (magnitude << L::kShift);
}

constexpr std::uint64_t kE8m0Nan = 0xff;

double decode_e8m0(std::uint64_t code) {
  code &= 0xff;
  if (code == kE8m0Nan) return kNan;
  return power_of_two(static_cast<int>(code) - 127);
}

// Ties go to the even code. Below 2^-127 there is nothing to round to but 2^-127.
std::uint64_t encode_e8m0(double value, Rounding rounding, Overflow overflow) {
  if (!(value > 0)) return kE8m0Nan;
  if (value <= 0x1p-127) return 0;
  const std::uint64_t a = std::bit_cast<std::uint64_t>(value);
  const bool nearest = rounding == Rounding::kNearestEven;
  // Codes and exponent fields of fp64 have the same parity (127 and 1023 are odd).
  const std::uint64_t half = (std::uint64_t{1} << 51) - 1 + ((a >> 52) & 1);
  const std::uint64_t code = ((a + (nearest ? half : 0)) >> 52) - (1023 - 127);
  if (code < kE8m0Nan) return code;
  return overflow == Overflow::kSaturate || (!nearest && a != kInf64) ? kE8m0Nan - 1 : kE8m0Nan;
}

// NaN, which no integer stands for, gives 0.
std::uint64_t encode_integer(double value, double low, double high, Rounding rounding) {
  if (value != value) return 0;
  const double clamped = value < low ? low : value > high ? high : value;
  constexpr double kMagic = 0x1.8p52;  // ulp 1 on both sides: adding it rounds to an integer, ties to even
  const double rounded = rounding == Rounding::kNearestEven ? clamped + kMagic - kMagic : clamped;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded));
}

/// What neighbours and distances need: the sign bit's mask (0 if unsigned), the unused low bits, the largest magnitude
/// reachable by a step, and the largest that is not NaN.
struct Steps {
  std::uint64_t sign;
  int shift;
  std::uint64_t last;
  std::uint64_t max_finite;
};

template <Format id>
constexpr Steps steps_of() {
  using L = Layout<id>;
  return {L::kSign, L::kShift, L::kHasInfinity ? L::kInfinity : L::kMax, L::kMax};
}

constexpr Steps steps(Format format) {
  switch (format) {
    case Format::kFp64: return {kSign64, 0, kInf64, kInf64 - 1};
    case Format::kFp32: return steps_of<Format::kFp32>();
    case Format::kTf32: return steps_of<Format::kTf32>();
    case Format::kFp16: return steps_of<Format::kFp16>();
    case Format::kBf16: return steps_of<Format::kBf16>();
    case Format::kE4m3: return steps_of<Format::kE4m3>();
    case Format::kE5m2: return steps_of<Format::kE5m2>();
    case Format::kE8m0: return {0, 0, kE8m0Nan - 1, kE8m0Nan - 1};
    case Format::kInt32: return {0, 0, 0, 0};  // two's complement, handled apart
    case Format::kUint8: return {0, 0, 0xff, 0xff};
  }
  return {};
}

std::uint64_t storage_mask(Format format) { return ~std::uint64_t{0} >> (64 - info(format).storage_bits); }

struct Parts {
  bool negative;
  std::uint64_t magnitude;
};

Parts split(const Steps& s, Format format, std::uint64_t code) {
  code &= storage_mask(format);
  return {(code & s.sign) != 0, (code & ~s.sign) >> s.shift};
}

// A step away from zero is outward; zero steps outward with the sign of the direction.
std::uint64_t step(Format format, std::uint64_t code, bool up) {
  if (format == Format::kInt32) {
    const auto value = static_cast<std::int32_t>(static_cast<std::uint32_t>(code));
    const bool stays =
        value == (up ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int32_t>::min());
    return static_cast<std::uint32_t>(code) + (stays ? 0u : up ? 1u : ~0u);
  }
  const Steps s = steps(format);
  Parts p = split(s, format, code);
  if (p.magnitude > s.last) return code & storage_mask(format);
  if (p.magnitude == 0 && s.sign != 0) p.negative = !up;
  const bool outward = p.negative != up;
  if (outward) {
    p.magnitude += p.magnitude < s.last;
  } else {
    p.magnitude -= p.magnitude > 0;
  }
  return (p.negative ? s.sign : 0) | (p.magnitude << s.shift);
}

}  // namespace

std::optional<Format> format_from_name(std::string_view name) {
  for (const FormatInfo& f : kFormats) {
    if (f.name == name) return f.id;
  }
  return std::nullopt;
}

std::optional<Format> format_from_safetensors_name(std::string_view name) {
  for (const FormatInfo& f : kFormats) {
    if (f.safetensors_name == name) return f.id;  // F32 finds fp32, which stands before tf32
  }
  return std::nullopt;
}

namespace {

template <Format id>
void encode_floats(std::span<const double> values, Overflow overflow, std::uint64_t* codes) {
  for (std::size_t i = 0; i < values.size(); ++i)
    codes[i] = encode_float<id>(values[i], Rounding::kNearestEven, overflow);
}

}  // namespace

void encode_all(Format format, std::span<const double> values, Overflow overflow, std::uint64_t* codes) {
  switch (format) {
    case Format::kFp16: return encode_floats<Format::kFp16>(values, overflow, codes);
    case Format::kBf16: return encode_floats<Format::kBf16>(values, overflow, codes);
    case Format::kE4m3: return encode_floats<Format::kE4m3>(values, overflow, codes);
    case Format::kE5m2: return encode_floats<Format::kE5m2>(values, overflow, codes);
    default:
      for (std::size_t i = 0; i < values.size(); ++i)
        codes[i] = encode(format, values[i], Rounding::kNearestEven, overflow);
  }
}

double decode(Format format, std::uint64_t code) {
  switch (format) {
    case Format::kFp64: return std::bit_cast<double>(code);
    case Format::kFp32: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(code)));
    case Format::kTf32: return decode_float<Format::kTf32>(code);
    case Format::kFp16: return decode_float<Format::kFp16>(code);
    case Format::kBf16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>((code & 0xffff) << 16)));
    case Format::kE4m3: return decode_float<Format::kE4m3>(code);
    case Format::kE5m2: return decode_float<Format::kE5m2>(code);
    case Format::kE8m0: return decode_e8m0(code);
    case Format::kInt32: return static_cast<std::int32_t>(static_cast<std::uint32_t>(code));
    case Format::kUint8: return static_cast<double>(code & 0xff);
  }
  return kNan;
}

std::uint64_t encode(Format format, double value, Rounding rounding, Overflow overflow) {
  switch (format) {
    case Format::kFp64: {
      if (value != value) return kInf64 | (std::uint64_t{1} << 51);
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
      return (bits & ~kSign64) == kInf64 && overflow == Overflow::kSaturate ? bits - 1 : bits;
    }
    case Format::kFp32: return encode_float<Format::kFp32>(value, rounding, overflow);
    case Format::kTf32: return encode_float<Format::kTf32>(value, rounding, overflow);
    case Format::kFp16: return encode_float<Format::kFp16>(value, rounding, overflow);
    case Format::kBf16: return encode_float<Format::kBf16>(value, rounding, overflow);
    case Format::kE4m3: return encode_float<Format::kE4m3>(value, rounding, overflow);
    case Format::kE5m2: return encode_float<Format::kE5m2>(value, rounding, overflow);
    case Format::kE8m0: return encode_e8m0(value, rounding, overflow);
    case Format::kInt32: return encode_integer(value, -2147483648.0, 2147483647.0, rounding) & 0xffffffffu;
    case Format::kUint8: return encode_integer(value, 0.0, 255.0, rounding);
  }
  return 0;
}

double round_to(Format format, double value, Rounding rounding, Overflow overflow) {
  return decode(format, encode(format, value, rounding, overflow));
}

bool is_nan(Format format, std::uint64_t code) {
  if (info(format).specials == Specials::kInteger) return false;
  const Steps s = steps(format);
  return split(s, format, code).magnitude > s.last;
}

bool is_infinite(Format format, std::uint64_t code) {
  if (info(format).specials != Specials::kIeee) return false;
  const Steps s = steps(format);
  return split(s, format, code).magnitude == s.last;
}

bool is_finite(Format format, std::uint64_t code) {
  if (info(format).specials == Specials::kInteger) return true;
  const Steps s = steps(format);
  return split(s, format, code).magnitude <= s.max_finite;
}

bool is_zero(Format format, std::uint64_t code) {
  if (format == Format::kE8m0) return false;
  return split(steps(format), format, code).magnitude == 0;
}

bool is_subnormal(Format format, std::uint64_t code) {
  const FormatInfo& f = info(format);
  if (f.specials == Specials::kInteger || f.specials == Specials::kE8m0) return false;
  const std::uint64_t magnitude = split(steps(format), format, code).magnitude;
  return magnitude != 0 && magnitude < (std::uint64_t{1} << f.fraction_bits);
}

bool sign_bit(Format format, std::uint64_t code) {
  if (format == Format::kE8m0 || format == Format::kUint8) return false;
  return (code >> (info(format).storage_bits - 1)) & 1;
}

std::uint64_t next_up(Format format, std::uint64_t code) { return step(format, code, true); }
std::uint64_t next_down(Format format, std::uint64_t code) { return step(format, code, false); }

// Above the largest finite number the last binade's spacing holds.
double ulp(Format format, double value) {
  const std::uint64_t a = std::bit_cast<std::uint64_t>(value) & ~kSign64;
  if (a >= kInf64) return kNan;
  const FormatInfo& f = info(format);
  if (f.specials == Specials::kInteger) return 1.0;
  int exponent = static_cast<int>(a >> 52) - 1023;
  if (exponent < f.min_exponent) return f.min_subnormal;
  if (exponent > f.max_exponent) exponent = f.max_exponent;
  const int spacing = exponent - f.fraction_bits;
  return spacing >= -1022 ? power_of_two(spacing) : std::bit_cast<double>(std::uint64_t{1} << (spacing + 1074));
}

std::int64_t ulp_distance(Format format, std::uint64_t a, std::uint64_t b) {
  if (is_nan(format, a) || is_nan(format, b)) {
    std::fprintf(stderr, "ulp_distance(%s, 0x%llx, 0x%llx): NaN\n", info(format).name.data(),
                 static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    std::abort();
  }
  if (format == Format::kInt32) {
    const auto x = std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(a))};
    const auto y = std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(b))};
    return x < y ? y - x : x - y;
  }
  const Steps s = steps(format);
  const Parts p = split(s, format, a);
  const Parts q = split(s, format, b);
  std::uint64_t distance = p.negative != q.negative    ? p.magnitude + q.magnitude
                           : p.magnitude > q.magnitude ? p.magnitude - q.magnitude
                                                       : q.magnitude - p.magnitude;
  // Only fp64 numbers of opposite sign can be further apart than the result holds.
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (distance > kMost) distance = kMost;
  return static_cast<std::int64_t>(distance);
}

}  // namespace assay
