// The block-FMA model against results of real tensor cores and hand-made edges; the tile against the dot product.
#include "oracle/mma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "oracle/mma_instruction.h"

namespace assay {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// One measured dot product; a and b widened to fp32, c and d codes of the accumulator format.
struct Vector {
  std::string device;
  Format input;
  bool fp16_accumulator;
  std::uint32_t c;
  std::uint32_t d;
  std::vector<float> a;
  std::vector<float> b;
};

MmaArch arch_of(const std::string& device) {
  return device == "A100" ? MmaArch::kAmpere : device == "Ada" ? MmaArch::kAda : MmaArch::kHopper;
}

std::uint32_t model_result(const Vector& v) {
  const MmaInstruction sync{TensorCore::kMmaSync, v.input, v.fp16_accumulator};
  if (v.device == "H200-sync") return modelled_mma(sync, v.a.data(), v.b.data(), v.c);
  const MmaModel& model = mma_model(arch_of(v.device), v.input);
  const int k = static_cast<int>(v.a.size());
  if (v.fp16_accumulator) {
    return mma_dot_fp16(model, v.input, k, v.a.data(), 1, v.b.data(), 1, static_cast<std::uint16_t>(v.c));
  }
  return bits(mma_dot(model, v.input, k, v.a.data(), 1, v.b.data(), 1, std::bit_cast<float>(v.c)));
}

std::uint32_t tile_result(const Vector& v) {
  float d = std::bit_cast<float>(v.c);
  const int k = static_cast<int>(v.a.size());
  mma_tile(mma_model(arch_of(v.device), v.input), v.input, 1, 1, k, {v.a.data(), k, 1}, {v.b.data(), 1, k}, &d, 1);
  return bits(d);
}

std::vector<float> widened(Format format, const std::string& list) {
  std::vector<float> values;
  std::istringstream in(list);
  for (std::string code; std::getline(in, code, ',');) {
    values.push_back(static_cast<float>(decode(format, std::stoul(code, nullptr, 16))));
  }
  return values;
}

std::uint32_t hex(const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)); }

TEST(Mma, EqualsTheCommittedDeviceResultsBitForBit) {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/tests/oracle/mma_sample.txt");
  ASSERT_TRUE(file);
  int checked = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream in(line);
    std::string device, input, accumulator, c, d, a, b;
    in >> device >> input >> accumulator >> c >> d >> a >> b;
    const Format format = format_from_name(input).value();
    const Vector v{device, format, accumulator == "fp16", hex(c), hex(d), widened(format, a), widened(format, b)};
    EXPECT_EQ(model_result(v), v.d) << line;
    EXPECT_TRUE(v.fp16_accumulator || tile_result(v) == v.d) << line;
    ++checked;
  }
  EXPECT_GT(checked, 400);
}

// Rows of numbers of one base from an xz-compressed text file; empty if there is no such file.
std::vector<std::vector<std::uint32_t>> rows_of(const std::string& path, int base) {
  std::vector<std::vector<std::uint32_t>> rows;
  if (!std::ifstream(path)) return rows;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("xz -dc '" + path + "'").c_str(), "r"), pclose);
  char* line = nullptr;
  std::size_t capacity = 0;
  while (getline(&line, &capacity, pipe.get()) > 0) {
    std::vector<std::uint32_t> row;
    for (char* at = line;;) {
      char* end = at;
      const unsigned long value = std::strtoul(at, &end, base);
      if (end == at) break;
      row.push_back(static_cast<std::uint32_t>(value));
      at = end;
    }
    rows.push_back(row);
  }
  std::free(line);
  return rows;
}

std::vector<float> floats(const std::vector<std::uint32_t>& row) {
  std::vector<float> values;
  for (const std::uint32_t u : row) values.push_back(std::bit_cast<float>(u));
  return values;
}

TEST(Mma, EqualsEveryPublishedDeviceVectorBitForBit) {
  const std::string root = std::string(ASSAY_SOURCE_DIR) + "/../shared/data/mma_vectors/";
  if (!std::ifstream(root + "README.md")) GTEST_SKIP() << "the full device vectors are not beside this checkout";
  int sets = 0;
  for (const std::string device : {"H200", "A100", "Ada"}) {
    for (const std::string name : {"bf16", "fp16", "tf32", "E4M3", "E5M2"}) {
      const std::string folder = root + device + "/" + name + "/";
      const auto a = rows_of(folder + "a_" + device + "_" + name + ".txt.xz", 16);
      const auto b = rows_of(folder + "b_" + device + "_" + name + ".txt.xz", 16);
      const auto c = rows_of(folder + "c_" + device + "_fp32.txt.xz", 2);
      const bool eight_bits = name[0] == 'E';
      const Format input = format_from_name(name == "E4M3" ? "e4m3" : name == "E5M2" ? "e5m2" : name).value();
      for (const bool fp16 : {false, true}) {
        // fp16 results are stored widened to fp32; the accumulator that went in was c rounded to fp16.
        const auto d = rows_of(folder + "d_" + device + (fp16 ? "_fp16.txt.xz" : "_fp32.txt.xz"), 2);
        if (d.empty()) continue;
        ASSERT_EQ(a.size(), d.size());
        ++sets;
        const bool hopper8 = eight_bits && device == "H200";
        int wrong = 0;
        for (std::size_t i = 0; i < d.size(); ++i) {
          Vector v{hopper8 && fp16 ? "H200-sync" : device, input, fp16, c[i][0], d[i][0], floats(a[i]), floats(b[i])};
          if (hopper8 && !fp16) v.c = 0;  // the published wgmma results were taken without the accumulator
          if (fp16) {
            v.c = static_cast<std::uint32_t>(encode(Format::kFp16, decode(Format::kFp32, v.c)));
            v.d = static_cast<std::uint32_t>(encode(Format::kFp16, decode(Format::kFp32, v.d)));
          }
          wrong += model_result(v) != v.d;
        }
        EXPECT_EQ(wrong, 0) << device << " " << name << (fp16 ? " fp16" : " fp32") << " of " << d.size();
      }
    }
  }
  EXPECT_EQ(sets, 20);
}

float dot(MmaArch arch, Format input, float c, const std::vector<float>& a, const std::vector<float>& b) {
  return mma_dot(mma_model(arch, input), input, static_cast<int>(a.size()), a.data(), 1, b.data(), 1, c);
}

TEST(Mma, TermsBelowTheAlignmentQuantumVanishOneByOne) {
  const std::vector<float> ones(5, 1.0F);
  const std::vector<float> tiny(5, 0x1p-25F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 1.0F, ones, tiny), 1.0F + 0x1p-23F) << "five 2^-25, rounded to zero";
  EXPECT_EQ(dot(MmaArch::kAmpere, Format::kBf16, 1.0F, ones, tiny), 1.0F) << "F = 24 drops each";
  EXPECT_EQ(
      dot(MmaArch::kHopper, Format::kE4m3, 1.0F, std::vector<float>(20, 0x1p-9F), std::vector<float>(20, 0x1p-5F)),
      1.0F)
      << "F = 13 drops each";
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kE4m3, 1.0F, {0x1p-9F}, {0x1p-4F}), 1.0F + 0x1p-13F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kE4m3, 1.0F + 0x1p-13F + 0x1p-14F, {0.0F}, {0.0F}), 1.0F + 0x1p-13F)
      << "even a product of zero cuts the accumulator to 13 fraction bits";
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, -1.0F, ones, tiny), -1.0F + 0x3p-24F) << "-1 + 5 2^-25 toward zero";
}

TEST(Mma, TheProductExponentIsNotNormalised) {
  std::vector<float> a(9, 1.0F);
  std::vector<float> b(9, 0x1p-25F);
  a[0] = b[0] = 1.5F;  // 2.25 counts as exponent 0, so eight terms of 2^-25 survive and reach 2^-22
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0.0F, a, b), 2.25F + 0x1p-22F);
}

TEST(Mma, AnAccumulatorFarAboveOrBelowTheProductsWinsOrVanishes) {
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0x1.234566p60F, {3.0F, -5.0F}, {1.0F, 7.0F}), 0x1.234566p60F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0x1.234566p-60F, {3.0F, -5.0F}, {1.0F, 7.0F}), -32.0F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, -0x1p-149F, {1.0F}, {0x1p-126F}), 0x1.fffffcp-127F)
      << "a subnormal accumulator takes part";
}

TEST(Mma, SubnormalsOverflowAndZerosAreTheDevices) {
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1p-133F}, {0x1p-16F})), 1u);
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1p-133F}, {-0x1p-17F})), 0u) << "toward zero, and +0";
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1.8p-75F, 0x1p-75F}, {0x1p-75F, 0x1p-75F})), 1u);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1p127F}, {2.0F}), INFINITY) << "overflow rounds to infinity";
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1p127F, 0x1p127F}, {2.0F, -1.0F}), 0x1p127F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0, {0x1p127F, 0x1p127F}, {0x1p127F, -0x1p127F}), 0.0F);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0x1.fffffep127F, {1.0F}, {0x1p102F}), 0x1.fffffep127F);
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kBf16, -0.0F, {-1.0F}, {0.0F})), 0u);
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kBf16, -1.0F, {1.0F}, {1.0F})), 0u);
}

TEST(Mma, InfinitiesAndNansFollowTheRules) {
  constexpr float kInf = INFINITY;
  for (const Format f : {Format::kBf16, Format::kFp16, Format::kTf32, Format::kE5m2}) {
    EXPECT_EQ(dot(MmaArch::kHopper, f, 1, {kInf}, {-2.0F}), -kInf);
    EXPECT_EQ(dot(MmaArch::kHopper, f, -kInf, {1.0F}, {1.0F}), -kInf);
    EXPECT_EQ(bits(dot(MmaArch::kHopper, f, 1, {kInf}, {0.0F})), kNan);
    EXPECT_EQ(bits(dot(MmaArch::kHopper, f, 1, {kInf, kInf}, {1.0F, -1.0F})), kNan);
    EXPECT_EQ(bits(dot(MmaArch::kHopper, f, kInf, {kInf}, {-1.0F})), kNan);
    EXPECT_EQ(bits(dot(MmaArch::kHopper, f, -NAN, {1.0F}, {1.0F})), kNan);
    EXPECT_EQ(bits(dot(MmaArch::kHopper, f, kInf, {NAN}, {0.0F})), kNan);
  }
  EXPECT_EQ(bits(dot(MmaArch::kHopper, Format::kE4m3, 1, {NAN}, {1.0F})), kNan);
}

TEST(Mma, AnFp16AccumulatorRoundsToNearestEven) {
  const auto dot16 = [](float c, std::vector<float> a, std::vector<float> b) {
    return decode(
        Format::kFp16,
        mma_dot_fp16(mma_model(MmaArch::kHopper, Format::kFp16), Format::kFp16, static_cast<int>(a.size()), a.data(), 1,
                     b.data(), 1, static_cast<std::uint16_t>(encode(Format::kFp16, static_cast<double>(c)))));
  };
  EXPECT_EQ(dot16(2048, {1}, {1}), 2048);
  EXPECT_EQ(dot16(2048, {3}, {1}), 2052);
  EXPECT_EQ(dot16(65504, {15}, {1}), 65504);
  EXPECT_EQ(dot16(65504, {16}, {1}), INFINITY);
  EXPECT_EQ(dot16(-INFINITY, {16}, {1}), -INFINITY);
  EXPECT_TRUE(std::isnan(dot16(1, {INFINITY}, {0})));
  EXPECT_FALSE(std::signbit(dot16(-0.0F, {-1}, {0})));
}

TEST(Mma, BlocksChainInOrderAndAShortBlockIsPadded) {
  std::mt19937_64 random(3);
  std::vector<float> a(43);
  std::vector<float> b(43);
  for (float& x : a) x = static_cast<float>(random() % 255) - 127;
  for (float& x : b) x = std::ldexp(static_cast<float>(random() % 255) - 127, -static_cast<int>(random() % 30));
  for (const MmaArch arch : {MmaArch::kAmpere, MmaArch::kHopper}) {
    const MmaModel& model = mma_model(arch, Format::kBf16);
    float chained = 5;
    for (int t = 0; t < 43; t += model.block_k) {
      chained = mma_dot(model, Format::kBf16, std::min(model.block_k, 43 - t), &a[static_cast<std::size_t>(t)], 1,
                        &b[static_cast<std::size_t>(t)], 1, chained);
    }
    EXPECT_EQ(mma_dot(model, Format::kBf16, 43, a.data(), 1, b.data(), 1, 5), chained);
  }
  std::vector<float> steps(48, 0.0F);
  steps[0] = 0x1p30F;
  steps[16] = 1;
  steps[32] = -0x1p30F;
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0, steps, std::vector<float>(48, 1.0F)), 0) << "1 is lost beside 2^30";
  std::swap(steps[16], steps[32]);
  EXPECT_EQ(dot(MmaArch::kHopper, Format::kBf16, 0, steps, std::vector<float>(48, 1.0F)), 1);
  EXPECT_EQ(mma_dot(mma_model(MmaArch::kHopper, Format::kBf16), Format::kBf16, 0, nullptr, 1, nullptr, 1, 7), 7);
  EXPECT_DEATH((void)mma_model(MmaArch::kAmpere, Format::kE4m3), "e4m3");
}

struct TileCase {
  MmaArch arch;
  Format input;
};

TEST(Mma, ATileGivesTheDotProductsBitsForAnyShapeStrideAndExponents) {
  std::mt19937_64 random(4);
  const TileCase cases[] = {{MmaArch::kHopper, Format::kBf16}, {MmaArch::kHopper, Format::kFp16},
                            {MmaArch::kHopper, Format::kTf32}, {MmaArch::kHopper, Format::kE4m3},
                            {MmaArch::kHopper, Format::kE5m2}, {MmaArch::kAmpere, Format::kBf16},
                            {MmaArch::kAmpere, Format::kTf32}, {MmaArch::kAda, Format::kE5m2}};
  for (const TileCase& tile : cases) {
    const Format input = tile.input;
    const MmaModel& model = mma_model(tile.arch, input);
    for (int round = 0; round < 24; ++round) {
      const int m = 1 + static_cast<int>(random() % 5);
      const int n = 1 + static_cast<int>(random() % 70);
      const int k = 1 + static_cast<int>(random() % 70);
      // Exponents: near one; the whole format with specials; sparse (mostly zero); the smallest.
      const auto number = [&]() {
        const std::uint64_t code = random();
        if (round % 4 == 1) return static_cast<float>(decode(input, code));
        if (round % 4 == 2 && random() % 4 != 0) return 0.0F;
        const double x = static_cast<double>(code >> 11) * 0x1p-52 - 1;
        const double scale = round % 4 == 3 ? info(input).min_normal * 4 : 4.0;
        return static_cast<float>(round_to(input, x * scale));
      };
      std::vector<float> a(static_cast<std::size_t>(m * k));
      std::vector<float> b(static_cast<std::size_t>(n * k));
      std::vector<float> c(static_cast<std::size_t>(m * (n + 3)));
      for (float& x : a) x = number();
      for (float& x : b) x = number();
      for (float& x : c) {
        const auto any = static_cast<std::uint32_t>(random());
        x = round % 4 == 1 ? std::bit_cast<float>(any) : static_cast<float>(any) * 0x1p-30F * (any % 2 ? 1.0F : -1.0F);
      }
      const bool transposed = random() % 2 == 0;
      const MmaOperand of_b = transposed ? MmaOperand{b.data(), 1, k} : MmaOperand{b.data(), n, 1};
      const std::vector<float> before = c;
      mma_tile(model, input, m, n, k, {a.data(), k, 1}, of_b, c.data(), n + 3);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n + 3; ++j) {
          const auto at = static_cast<std::size_t>(i * (n + 3) + j);
          const float want = j >= n ? before[at]
                                    : mma_dot(model, input, k, &a[static_cast<std::size_t>(i * k)], 1,
                                              b.data() + j * of_b.column_stride, of_b.row_stride, before[at]);
          ASSERT_EQ(bits(c[at]), bits(want)) << info(input).name << " round " << round << " m " << m << " n " << n
                                             << " k " << k << " at " << i << "," << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay
