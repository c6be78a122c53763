// Decoding many elements at once gives the values that decoding one by one gives, for every code.
#include "oracle/ops/attention/decode_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace assay {
namespace {

Tensor tensor_of(Format format, std::int64_t elements) {
  Tensor t{{"t", format, {elements}, {1}, 0, elements}, {}};
  t.bytes.resize(static_cast<std::size_t>(t.layout.storage_bytes()));
  return t;
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST(DecodeRun, AgreesWithDecodeOnEveryCodeOfTheShortFormats) {
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kE4m3, Format::kE5m2, Format::kE8m0}) {
    const std::int64_t codes = std::int64_t{1} << info(format).storage_bits;
    Tensor t = tensor_of(format, codes);
    for (std::int64_t c = 0; c < codes; ++c) t.output().set_code(c, static_cast<std::uint64_t>(c));
    std::vector<double> run(static_cast<std::size_t>(codes));
    decode_run(t.view(), 0, 1, run);
    for (std::size_t c = 0; c < run.size(); ++c)
      ASSERT_TRUE(same(run[c], decode(format, c))) << info(format).name << " " << c;
  }
}

TEST(DecodeRun, AgreesWithDecodeOnFp32AtEveryExponentAndFromOddAddresses) {
  Tensor t = tensor_of(Format::kFp32, 512 * 3);
  for (std::int64_t i = 0; i < t.layout.storage; ++i)
    t.output().set_code(i, static_cast<std::uint64_t>(i / 3) << 23 | (i % 3 == 0 ? 0U : i % 3 == 1 ? 1U : 0x555555U));
  std::vector<double> run(static_cast<std::size_t>(t.layout.storage));
  decode_run(t.view(), 0, 1, run);
  for (std::size_t i = 0; i < run.size(); ++i)
    ASSERT_TRUE(same(run[i], t.view().value(static_cast<std::int64_t>(i)))) << i;
  std::vector<std::byte> shifted(t.bytes.size() + 1);
  std::copy(t.bytes.begin(), t.bytes.end(), shifted.begin() + 1);
  std::vector<double> again(run.size());
  decode_run(TensorView{&t.layout, shifted.data() + 1}, 0, 1, again);
  for (std::size_t i = 0; i < run.size(); ++i) ASSERT_TRUE(same(run[i], again[i])) << i;
}

TEST(DecodeRun, FollowsFirstAndStride) {
  for (const Format format :
       {Format::kFp64, Format::kFp32, Format::kBf16, Format::kFp16, Format::kE4m3, Format::kE5m2}) {
    Tensor t = tensor_of(format, 3000);
    for (std::int64_t i = 0; i < 3000; ++i) t.output().set_code(i, encode(format, static_cast<double>(i % 13) - 5));
    std::vector<double> run(300);  // more than one gathered run
    for (const std::int64_t stride : {0, 1, 2, 9}) {
      decode_run(t.view(), 5, stride, run);
      for (std::size_t i = 0; i < run.size(); ++i)
        EXPECT_EQ(run[i], t.view().value(5 + static_cast<std::int64_t>(i) * stride)) << info(format).name << stride;
    }
  }
}

}  // namespace
}  // namespace assay
