// Formats: every small code there and back, rounding against MPFR, neighbours, spacing and distance.
#include "oracle/format.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace assay {
namespace {

constexpr Format kSmall[] = {Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2, Format::kE8m0};
constexpr Format kFloats[] = {Format::kFp64, Format::kFp32, Format::kTf32, Format::kFp16,
                              Format::kBf16, Format::kE4m3, Format::kE5m2};
constexpr Format kAll[] = {Format::kFp64, Format::kFp32, Format::kTf32, Format::kFp16,  Format::kBf16,
                           Format::kE4m3, Format::kE5m2, Format::kE8m0, Format::kInt32, Format::kUint8};
constexpr double kInf = INFINITY;

std::uint64_t codes(Format f) { return std::uint64_t{1} << info(f).storage_bits; }

std::string say(Format f, double x, Rounding r, Overflow o) {
  char text[120];
  std::snprintf(text, sizeof text, "%s value %a %s %s", info(f).name.data(), x,
                r == Rounding::kNearestEven ? "nearest" : "toward zero", o == Overflow::kIeee ? "ieee" : "saturate");
  return text;
}

// The rounded value by MPFR: precision and exponent range of the format, gradual underflow by mpfr_subnormalize. The
// exponent range is open at the top; overflow is decided here from the rounded value, as IEEE 754 7.4 words it.
double mpfr_rounded(Format f, double x, Rounding rounding, Overflow overflow) {
  const FormatInfo& i = info(f);
  const bool nan_only = i.specials == Specials::kNanOnly;
  const double beyond = overflow == Overflow::kSaturate ? i.max_finite : nan_only ? NAN : kInf;
  if (std::isinf(x)) return std::copysign(beyond, x);
  const mpfr_rnd_t mode = rounding == Rounding::kNearestEven ? MPFR_RNDN : MPFR_RNDZ;
  const mpfr_exp_t old_min = mpfr_get_emin();
  mpfr_t y;
  mpfr_init2(y, i.fraction_bits + 1);
  mpfr_set_emin(i.min_exponent - i.fraction_bits + 1);  // MPFR significands are in [1/2, 1)
  int ternary = mpfr_set_d(y, x, mode);
  ternary = mpfr_check_range(y, ternary, mode);
  mpfr_subnormalize(y, ternary, mode);
  mpfr_set_emin(old_min);
  double result = mpfr_get_d(y, MPFR_RNDN);
  mpfr_clear(y);
  if (std::fabs(result) > i.max_finite) {
    result = std::copysign(rounding == Rounding::kTowardZero ? i.max_finite : beyond, x);
  }
  return result;
}

void expect_encoded(Format f, double x) {
  for (const Rounding r : {Rounding::kNearestEven, Rounding::kTowardZero}) {
    for (const Overflow o : {Overflow::kIeee, Overflow::kSaturate}) {
      const double want = mpfr_rounded(f, x, r, o);
      const double got = round_to(f, x, r, o);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << say(f, x, r, o) << " gave " << got;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(want), std::bit_cast<std::uint64_t>(got))
            << say(f, x, r, o) << ": want " << want << ", got " << got;
      }
    }
  }
}

TEST(Format, TableAgreesWithItsOwnFieldsAndNames) {
  for (const Format f : kAll) {
    const FormatInfo& i = info(f);
    EXPECT_EQ(i.id, f);
    EXPECT_EQ(format_from_name(i.name), f);
    if (i.specials == Specials::kInteger) continue;
    EXPECT_EQ(i.min_normal, std::ldexp(1.0, i.min_exponent)) << i.name;
    EXPECT_EQ(i.min_subnormal, std::ldexp(1.0, i.min_exponent - i.fraction_bits)) << i.name;
    EXPECT_EQ(i.unit_roundoff, std::ldexp(1.0, -i.fraction_bits - 1)) << i.name;
    const double top = 2 - std::ldexp(i.specials == Specials::kNanOnly ? 2.0 : 1.0, -i.fraction_bits);
    EXPECT_EQ(i.max_finite, std::ldexp(top, i.max_exponent)) << i.name;
    EXPECT_EQ(decode(f, encode(f, kInf, Rounding::kNearestEven, Overflow::kSaturate)), i.max_finite) << i.name;
  }
  EXPECT_EQ(format_from_name("fp12"), std::nullopt);
  EXPECT_EQ(format_from_safetensors_name("F32"), Format::kFp32);
  EXPECT_EQ(format_from_safetensors_name("BF16"), Format::kBf16);
  EXPECT_EQ(format_from_safetensors_name("bf16"), std::nullopt);
}

TEST(Format, EverySmallCodeSurvivesDecodeAndEncodeAndNanBecomesCanonical) {
  for (const Format f : kSmall) {
    const std::uint64_t nan = encode(f, NAN);
    ASSERT_TRUE(is_nan(f, nan));
    for (std::uint64_t code = 0; code < codes(f); ++code) {
      const double value = decode(f, code);
      ASSERT_EQ(is_nan(f, code), std::isnan(value)) << info(f).name << " " << code;
      const std::uint64_t want = is_nan(f, code) ? nan : code;
      for (const Rounding r : {Rounding::kNearestEven, Rounding::kTowardZero}) {
        ASSERT_EQ(encode(f, value, r), want) << info(f).name << " " << code;
      }
      ASSERT_EQ(is_infinite(f, code), std::isinf(value));
      ASSERT_EQ(is_finite(f, code), std::isfinite(value));
      ASSERT_EQ(is_zero(f, code), value == 0);
      const bool subnormal = value != 0 && std::fabs(value) < info(f).min_normal;
      ASSERT_EQ(is_subnormal(f, code), subnormal);
      ASSERT_TRUE(std::isnan(value) || sign_bit(f, code) == std::signbit(value));
      ASSERT_EQ(std::isnan(value) ? nan : encode(f, decode(f, code | codes(f))), want) << "bits above storage count";
    }
  }
}

TEST(Format, KnownCodesAreTheStandards) {
  EXPECT_EQ(decode(Format::kE4m3, 0x7e), 448);
  EXPECT_TRUE(is_nan(Format::kE4m3, 0x7f));
  EXPECT_TRUE(is_nan(Format::kE4m3, 0xff));
  EXPECT_EQ(encode(Format::kE4m3, 464.0), 0x7eu);
  EXPECT_EQ(encode(Format::kE4m3, std::nextafter(464.0, 1000.0)), 0x7fu);
  EXPECT_EQ(encode(Format::kE4m3, -1e30), 0xffu);
  EXPECT_EQ(encode(Format::kE4m3, -1e30, Rounding::kNearestEven, Overflow::kSaturate), 0xfeu);
  EXPECT_EQ(encode(Format::kE4m3, 1e30, Rounding::kTowardZero), 0x7eu);
  EXPECT_EQ(encode(Format::kE4m3, kInf, Rounding::kTowardZero), 0x7fu);
  EXPECT_EQ(decode(Format::kE5m2, 0x7b), 57344);
  EXPECT_EQ(decode(Format::kE5m2, 0x7c), kInf);
  EXPECT_EQ(encode(Format::kFp16, 65519.99), 0x7bffu);
  EXPECT_EQ(encode(Format::kFp16, 65520.0), 0x7c00u);
  EXPECT_EQ(encode(Format::kFp16, 0x1p-25), 0u);
  EXPECT_EQ(encode(Format::kFp16, -0x1.8p-25), 0x8001u);
  EXPECT_EQ(encode(Format::kBf16, -0.0), 0x8000u);
  EXPECT_EQ(encode(Format::kFp32, NAN), 0x7fc00000u);
  EXPECT_EQ(encode(Format::kTf32, 1.0 + 0x1p-11), 0x3f800000u);
  EXPECT_EQ(encode(Format::kTf32, 1.0 + 0x1.8p-10), 0x3f804000u);
  EXPECT_EQ(decode(Format::kTf32, 0x3f801fff), 1.0) << "the low 13 bits of tf32 do not count";
  EXPECT_EQ(encode(Format::kFp64, -kInf, Rounding::kNearestEven, Overflow::kSaturate), 0xffefffffffffffffu);
}

TEST(Format, ScalesOfE8m0RoundToPowersOfTwo) {
  EXPECT_EQ(decode(Format::kE8m0, 0), 0x1p-127);
  EXPECT_EQ(decode(Format::kE8m0, 254), 0x1p127);
  EXPECT_EQ(encode(Format::kE8m0, 1.0), 127u);
  EXPECT_EQ(encode(Format::kE8m0, 1.5), 128u) << "a tie goes to the even code";
  EXPECT_EQ(encode(Format::kE8m0, 3.0), 128u) << "a tie goes to the even code";
  EXPECT_EQ(encode(Format::kE8m0, 1.99, Rounding::kTowardZero), 127u);
  EXPECT_EQ(encode(Format::kE8m0, 1e-300), 0u);
  for (const double bad : {0.0, -0.0, -1.0, -kInf, double{NAN}, kInf, 0x1.81p127}) {
    EXPECT_EQ(encode(Format::kE8m0, bad), 0xffu) << bad;
  }
  EXPECT_EQ(encode(Format::kE8m0, 1e300, Rounding::kNearestEven, Overflow::kSaturate), 254u);
  EXPECT_EQ(encode(Format::kE8m0, 1e300, Rounding::kTowardZero), 254u);
}

TEST(Format, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(encode(Format::kInt32, 2.5), 2u);
  EXPECT_EQ(encode(Format::kInt32, -3.5), 0xfffffffcu);
  EXPECT_EQ(encode(Format::kInt32, -3.9, Rounding::kTowardZero), 0xfffffffdu);
  EXPECT_EQ(encode(Format::kInt32, 1e20), 0x7fffffffu);
  EXPECT_EQ(encode(Format::kInt32, -kInf), 0x80000000u);
  EXPECT_EQ(encode(Format::kInt32, NAN), 0u);
  EXPECT_EQ(decode(Format::kInt32, 0xfffffffe), -2);
  EXPECT_EQ(encode(Format::kUint8, 254.5), 254u);
  EXPECT_EQ(encode(Format::kUint8, 1000), 255u);
  EXPECT_EQ(encode(Format::kUint8, -1), 0u);
}

TEST(Format, EncodeRoundsEveryMidpointAndItsNeighboursOfSmallFormatsAsMpfr) {
  for (const Format f : {Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2}) {
    for (std::uint64_t code = 0; code < codes(f) / 2; ++code) {
      if (!is_finite(f, code)) continue;
      const double low = decode(f, code);
      // Past the largest number the next one of an unbounded exponent range is one spacing away.
      const double high = low + ulp(f, low);
      const double middle = low + (high - low) / 2;
      for (const double x : {low, std::nextafter(low, kInf), std::nextafter(middle, 0.0), middle,
                             std::nextafter(middle, kInf), std::nextafter(high, 0.0), high}) {
        expect_encoded(f, x);
        expect_encoded(f, -x);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Format, EncodeRoundsRandomAndExtremeNumbersOfEveryFormatAsMpfr) {
  std::mt19937_64 random(20240607);
  for (const Format f : kFloats) {
    const FormatInfo& i = info(f);
    std::vector<double> values = {0.0,
                                  kInf,
                                  0x1p-1074,
                                  0x1.fffffffffffffp-1023,
                                  0x1p-1022,
                                  0x1.8p-1074,
                                  i.max_finite,
                                  i.min_normal,
                                  i.min_subnormal,
                                  i.min_subnormal / 2,
                                  i.max_finite * (1 + i.unit_roundoff),
                                  0x1.fffffffffffffp1023};
    const std::size_t edges = values.size();
    for (std::size_t e = 0; e < edges; ++e) {
      values.push_back(std::nextafter(values[e], 0.0));
      values.push_back(std::nextafter(values[e], kInf));
    }
    for (int n = 0; n < 20000; ++n) values.push_back(std::bit_cast<double>(random() >> 1));  // any exponent
    for (int n = 0; n < 40000; ++n) {
      // A number of the format, or one near a midpoint: fraction bits below the format's last are few.
      const int span = i.max_exponent - i.min_exponent + i.fraction_bits + 4;
      const int exponent =
          i.min_exponent - i.fraction_bits - 2 + static_cast<int>(random() % static_cast<unsigned>(span));
      const double units = static_cast<double>((random() >> 11) >> (random() % 53));
      values.push_back(std::ldexp(units, exponent - static_cast<int>(random() % 53)));
    }
    for (const double x : values) {
      if (std::isnan(x)) continue;
      expect_encoded(f, x);
      expect_encoded(f, -x);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Format, EncodesManyAsEachAlone) {
  std::mt19937_64 random(3);
  std::vector<double> values{0.0, -0.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  while (values.size() < 4099)
    values.push_back(std::ldexp(static_cast<double>(random()) * 0x1p-64 - 0.5, static_cast<int>(random() % 300) - 150));
  for (int id = 0; id < kFormatCount; ++id)
    for (const Overflow overflow : {Overflow::kIeee, Overflow::kSaturate}) {
      const auto format = static_cast<Format>(id);
      std::vector<std::uint64_t> codes(values.size());
      encode_all(format, values, overflow, codes.data());
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(codes[i], encode(format, values[i], Rounding::kNearestEven, overflow))
            << info(format).name << " " << values[i];
    }
}

TEST(Format, WideCodesSurviveDecodeAndEncode) {
  std::mt19937_64 random(7);
  for (const Format f : {Format::kFp64, Format::kFp32, Format::kTf32}) {
    for (int n = 0; n < 200000; ++n) {
      std::uint64_t code = random();
      if (f != Format::kFp64) code &= 0xffffffffu;
      if (n % 4 == 0) code &= ~(std::uint64_t{info(f).exponent_bits == 11 ? 0x7ffu : 0xffu} << info(f).fraction_bits);
      if (f == Format::kTf32) code &= ~std::uint64_t{0x1fff};
      const std::uint64_t want = is_nan(f, code) ? encode(f, NAN) : code;
      ASSERT_EQ(encode(f, decode(f, code)), want) << info(f).name << " " << std::hex << code;
    }
  }
}

TEST(Format, NeighboursWalkThroughEveryValueInOrder) {
  for (const Format f : kSmall) {
    const bool is_signed = f != Format::kE8m0;
    const double top = info(f).specials == Specials::kIeee ? kInf : info(f).max_finite;
    std::uint64_t code = encode(f, is_signed ? -top : info(f).min_normal, Rounding::kNearestEven, Overflow::kSaturate);
    if (is_signed && std::isinf(top)) code = encode(f, -kInf);
    std::uint64_t steps = 0;
    while (decode(f, code) != top) {
      const std::uint64_t up = next_up(f, code);
      ASSERT_EQ(ulp_distance(f, code, up), 1) << info(f).name << " " << code;
      ASSERT_LT(decode(f, code), decode(f, up));
      const std::uint64_t back = next_down(f, up);
      if (is_zero(f, code)) {
        ASSERT_EQ(back, 0u) << "the number below the smallest positive one is +0";
      } else {
        ASSERT_EQ(back, code);
      }
      code = up;
      ++steps;
    }
    EXPECT_EQ(next_up(f, code), code) << "the end stays";
    // Every non-NaN code once, but -0 and +0 are one stop.
    std::uint64_t numbers = 0;
    for (std::uint64_t c = 0; c < codes(f); ++c) numbers += !is_nan(f, c);
    EXPECT_EQ(steps, numbers - (is_signed ? 2 : 1)) << info(f).name;
  }
  EXPECT_EQ(next_up(Format::kFp16, 0x8001), 0x8000u);
  EXPECT_EQ(next_up(Format::kFp16, 0x8000), 0x0001u);
  EXPECT_EQ(next_down(Format::kFp16, 0x0000), 0x8001u);
  EXPECT_EQ(next_up(Format::kTf32, 0x3f800000), 0x3f802000u);
  EXPECT_EQ(next_up(Format::kE4m3, 0x7f), 0x7fu);
  EXPECT_EQ(next_down(Format::kFp64, std::bit_cast<std::uint64_t>(1.0)), 0x3fefffffffffffffu);
  EXPECT_EQ(next_down(Format::kInt32, 0x80000000), 0x80000000u);
  EXPECT_EQ(next_up(Format::kInt32, 0xffffffff), 0u);
}

TEST(Format, UlpIsTheGapAboveTheMagnitude) {
  for (const Format f : kSmall) {
    for (std::uint64_t code = 0; code < codes(f); ++code) {
      const double value = decode(f, code);
      if (!is_finite(f, code) || std::fabs(value) == info(f).max_finite || sign_bit(f, code)) continue;
      ASSERT_EQ(ulp(f, value), decode(f, next_up(f, code)) - value) << info(f).name << " " << code;
      ASSERT_EQ(ulp(f, -value), ulp(f, value));
    }
    EXPECT_TRUE(std::isnan(ulp(f, kInf)));
    EXPECT_TRUE(std::isnan(ulp(f, NAN)));
  }
  EXPECT_EQ(ulp(Format::kE4m3, 448), 32);
  EXPECT_EQ(ulp(Format::kE4m3, 1e9), 32) << "past the largest number, the last binade's";
  EXPECT_EQ(ulp(Format::kFp64, 0x1p-1022), 0x1p-1074);
  EXPECT_EQ(ulp(Format::kFp64, 0x1p-970), 0x1p-1022);
  EXPECT_EQ(ulp(Format::kFp64, 0x1p-971), 0x1p-1023);
  EXPECT_EQ(ulp(Format::kFp32, 1.5), 0x1p-23);
  EXPECT_EQ(ulp(Format::kTf32, 1e-45), 0x1p-136);
  EXPECT_EQ(ulp(Format::kInt32, 7), 1);
}

TEST(Format, UlpDistanceCountsNumbersAcrossZero) {
  EXPECT_EQ(ulp_distance(Format::kFp16, 0x0000, 0x8000), 0);
  EXPECT_EQ(ulp_distance(Format::kFp16, 0x0001, 0x8001), 2);
  EXPECT_EQ(ulp_distance(Format::kFp16, 0x8001, 0x0001), 2);
  EXPECT_EQ(ulp_distance(Format::kE4m3, 0x7e, 0xfe), 252);
  EXPECT_EQ(ulp_distance(Format::kTf32, 0x3f800000, 0x40000000), 1024);
  EXPECT_EQ(ulp_distance(Format::kInt32, 0xffffffff, 1), 2);
  EXPECT_EQ(ulp_distance(Format::kE8m0, 3, 250), 247);
  EXPECT_EQ(ulp_distance(Format::kFp64, 0x7ff0000000000000, 0xfff0000000000000), INT64_MAX);
  EXPECT_DEATH((void)ulp_distance(Format::kFp16, 0x7e00, 0), "NaN");
}

}  // namespace
}  // namespace assay
