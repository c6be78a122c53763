// Formats against the host conversions of the CUDA headers, where those are installed.
#include <gtest/gtest.h>

#ifdef ASSAY_HAVE_CUDA_HEADERS

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "oracle/format.h"

namespace assay {
namespace {

std::uint16_t bits16(__half h) { return std::bit_cast<std::uint16_t>(h); }
std::uint16_t bits16(__nv_bfloat16 h) { return std::bit_cast<std::uint16_t>(h); }

// Every fp16, bf16, e4m3 and e5m2 number, the midpoints between them, numbers next to those, and random bits.
std::vector<double> inputs() {
  std::vector<double> values;
  for (const Format f : {Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2}) {
    for (std::uint64_t code = 0; code < (std::uint64_t{1} << info(f).storage_bits); ++code) {
      if (is_nan(f, code)) continue;
      const double x = decode(f, code);
      values.push_back(x);
      if (!std::isfinite(x)) continue;
      const double middle = x + std::copysign(ulp(f, x) / 2, x);
      values.insert(values.end(), {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 2 * middle)});
    }
  }
  std::mt19937_64 random(11);
  for (int n = 0; n < 200000; ++n) {
    const double x = std::bit_cast<double>(random());
    values.push_back(std::isnan(x) ? 0.0 : x);
    values.push_back(std::ldexp(x < 0 ? -1.0 - static_cast<double>(random() >> 12) * 0x1p-52 : 1.5,
                                static_cast<int>(random() % 64) - 40));
  }
  return values;
}

TEST(FormatCuda, DecodesEverySixteenAndEightBitCodeAsCuda) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto c = static_cast<std::uint16_t>(code);
    const float half = __half2float(std::bit_cast<__half>(c));
    const float brain = __bfloat162float(std::bit_cast<__nv_bfloat16>(c));
    if (std::isnan(half)) {
      ASSERT_TRUE(is_nan(Format::kFp16, code));
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(half), encode(Format::kFp32, decode(Format::kFp16, code)));
    }
    if (std::isnan(brain)) {
      ASSERT_TRUE(is_nan(Format::kBf16, code));
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(brain), encode(Format::kFp32, decode(Format::kBf16, code)));
    }
  }
  for (unsigned code = 0; code < 0x100; ++code) {
    const auto c = static_cast<__nv_fp8_storage_t>(code);
    for (const auto& [format, kind] : {std::pair{Format::kE4m3, __NV_E4M3}, std::pair{Format::kE5m2, __NV_E5M2}}) {
      const double cuda = static_cast<double>(__half2float(__half(__nv_cvt_fp8_to_halfraw(c, kind))));
      if (std::isnan(cuda)) {
        ASSERT_TRUE(is_nan(format, code)) << info(format).name << " " << code;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(cuda), std::bit_cast<std::uint64_t>(decode(format, code)));
      }
    }
  }
}

TEST(FormatCuda, EncodesAsCudaWithAndWithoutSaturation) {
  for (const double x : inputs()) {
    ASSERT_EQ(encode(Format::kFp16, x), bits16(__double2half(x))) << x;
    ASSERT_EQ(encode(Format::kBf16, x), bits16(__double2bfloat16(x))) << x;
    const float y = static_cast<float>(x);
    const auto wide = static_cast<double>(y);
    ASSERT_EQ(encode(Format::kFp16, wide, Rounding::kTowardZero), bits16(__float2half_rz(y))) << y;
    ASSERT_EQ(encode(Format::kBf16, wide, Rounding::kTowardZero), bits16(__float2bfloat16_rz(y))) << y;
    for (const auto& [format, kind] : {std::pair{Format::kE4m3, __NV_E4M3}, std::pair{Format::kE5m2, __NV_E5M2}}) {
      ASSERT_EQ(encode(format, x, Rounding::kNearestEven, Overflow::kSaturate),
                __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind))
          << info(format).name << " " << x;
      const auto plain = __nv_cvt_double_to_fp8(x, __NV_NOSAT, kind);
      const auto ours = encode(format, x);
      if (is_nan(format, ours)) {
        ASSERT_TRUE(is_nan(format, plain)) << info(format).name << " " << x;
      } else {
        ASSERT_EQ(ours, plain) << info(format).name << " " << x;
      }
    }
  }
  EXPECT_TRUE(is_nan(Format::kFp16, bits16(__double2half(NAN))));
  EXPECT_TRUE(is_nan(Format::kFp16, encode(Format::kFp16, NAN)));
}

}  // namespace
}  // namespace assay

#else

TEST(FormatCuda, AgreesWithTheCudaHeaders) { GTEST_SKIP() << "no CUDA headers found when this was built"; }

#endif
