// Recipes: golden bits, statistics, and that each shape of logits is what its name claims.
#include "cases/recipes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <numbers>
#include <set>

#include "cases/file_source.h"
#include "cases/text.h"
#include "oracle/error.h"

namespace assay {
namespace {

InputSpec spec_of(std::string role, Format format, std::string axes, std::vector<std::int64_t> shape) {
  InputSpec spec;
  spec.axes = std::move(axes);
  spec.layout.role = std::move(role);
  spec.layout.format = format;
  spec.layout.shape = std::move(shape);
  spec.layout.strides.assign(spec.layout.shape.size(), 1);
  for (std::size_t i = spec.layout.shape.size(); i-- > 1;)
    spec.layout.strides[i - 1] = spec.layout.strides[i] * spec.layout.shape[i];
  spec.layout.storage = spec.layout.count();
  return spec;
}

constexpr double kScale = 0.25;

Tensor filled(const std::string& source, const InputSpec& spec) {
  Tensor tensor{spec.layout, std::vector<std::byte>(static_cast<std::size_t>(spec.layout.storage_bytes()))};
  const Source parsed = parse_source(spec.layout.role, source);
  check_fits(spec.layout.role, parsed, spec);
  fill_from_recipe(parsed, spec, kScale, tensor.bytes.data());
  return tensor;
}

std::vector<double> values(const std::string& source, const InputSpec& spec) {
  const Tensor tensor = filled(source, spec);
  std::vector<double> out;
  for (std::int64_t i = 0; i < tensor.layout.count(); ++i) out.push_back(tensor.view().value(i));
  return out;
}

std::string with_args(const Recipe& recipe, std::span<const std::string> args) {
  std::string text(recipe.name);
  if (!args.empty()) text.append("(").append(joined(args)).append(")");
  return text;
}

/// `keys` vectors of 16 channels in one head.
InputSpec keys_spec(std::int64_t keys, Format format = Format::kBf16, std::string role = "k") {
  return spec_of(std::move(role), format, "bhsc", {1, 1, keys, 16});
}

/// scale q.k for one query against every key, in fp64 (exact enough for 16 channels).
std::vector<double> logits(const std::string& q, const std::string& k, std::int64_t keys, Format format) {
  const std::vector<double> query = values(q, keys_spec(1, format, "q")), key = values(k, keys_spec(keys, format));
  std::vector<double> out(static_cast<std::size_t>(keys));
  for (std::size_t j = 0; j < out.size(); ++j) {
    double sum = 0;
    for (std::size_t c = 0; c < 16; ++c) sum += query[c] * key[j * 16 + c];
    out[j] = kScale * sum;
  }
  return out;
}

// One line per recipe, format and shape: the bits of a recipe never change; a changed recipe takes a new name.
TEST(Recipes, BitsAreTheGoldenOnesUnderEveryCompilerAndLevel) {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/cases/golden.txt");
  ASSERT_TRUE(file);
  std::map<std::string, std::string> golden;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) golden[line.substr(17)] = line.substr(0, 16);
  const auto check = [&](const std::string& source, const InputSpec& spec) {
    const std::string name = std::string(info(spec.layout.format).name) + " " + spec.axes + " " + source;
    const std::string hash = content_hash(filled(source, spec).bytes);
    EXPECT_EQ(golden[name], hash) << "golden.txt has no or another hash; if the recipe is new, add\n"
                                  << hash << " " << name;
    golden.erase(name);
  };
  const auto check_vectors = [&](const std::string& source) {
    for (const Format format : {Format::kFp32, Format::kFp16, Format::kBf16, Format::kE4m3}) {
      check(source, spec_of("k", format, "bhsc", {2, 2, 37, 20}));
      InputSpec packed = spec_of("k", format, "thc", {61, 2, 20});
      packed.starts = {0, 5, 5, 61};
      check(source, packed);
    }
  };
  for (const Recipe& recipe : all_recipes()) {
    const std::string source = std::string(recipe.name) + "@7";
    if (recipe.fits == Fits::kBoolMask)
      check(source, spec_of("mask", Format::kUint8, "bhqk", {2, 2, 9, 133}));
    else if (recipe.fits == Fits::kScoreMask)
      check(source, spec_of("mask", Format::kFp32, "bhqk", {2, 2, 9, 133}));
    else if (recipe.fits == Fits::kHeads)
      check(source, spec_of("slopes", Format::kFp32, "bh", {2, 12}));
    else if (recipe.fits == Fits::kPositions)
      check(source, spec_of("seg_kv", Format::kInt32, "bs", {2, 133}));
    else if (recipe.fits == Fits::kKeyList)
      check(source, spec_of("mask", Format::kInt32, "bhqx", {2, 2, 9, 70}));
    else
      check_vectors(source);
  }
  for (const char* source :
       {"normal(0.5,-2)@8", "uniform(0,3)@9", "rising(9,16,3)@1", "falling(1,8)@2", "logit_offset(-50000,0.5)@3",
        "probe(0.125)@4", "mixed_exponents(-30,5)@5", "massive(1880,3,4)@6", "subnormal(0.5)@18446744073709551615"})
    check_vectors(source);
  check("slopes(1)", spec_of("slopes", Format::kFp32, "h", {12}));
  check("indices(133,0.5)@3", spec_of("mask", Format::kInt32, "bhqx", {2, 2, 9, 70}));
  check("block(3,5,0.25)@2", spec_of("mask", Format::kUint8, "bhqk", {2, 2, 9, 133}));
  EXPECT_TRUE(golden.empty()) << "golden.txt lists a recipe that is gone: " << golden.begin()->first;
}

TEST(Recipes, NormalNumbersAreTheInverseOfTheNormalTail) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t bits = i < 10000 ? mix64(i) >> (i % 60) : mix64(i);
    const double tail = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-53;
    const double x = unit_normal(bits);
    ASSERT_EQ(x < 0, bits % 2 == 1);
    ASSERT_NEAR(0.5 * std::erfc(std::abs(x) / std::numbers::sqrt2) / tail, 1.0, 1e-13) << bits;
  }
}

TEST(Recipes, ManyNormalNumbersAreTheSameAsEachAlone) {
  std::vector<double> many(100'003);
  const Stream stream{absorb(0, 7)};
  unit_normals(stream, many);
  std::size_t tails = 0;
  for (std::size_t i = 0; i < many.size(); ++i) {
    ASSERT_EQ(many[i], unit_normal(stream.bits(static_cast<std::int64_t>(i)))) << i;
    tails += std::abs(many[i]) > 4;
  }
  EXPECT_GT(tails, 0U);
}

TEST(Recipes, NormalNumbersHaveTheMomentsAndTailsOfTheNormalDistribution) {
  const std::vector<double> x = values("normal(2,1)@5", spec_of("q", Format::kFp64, "bhsc", {2, 4, 1000, 128}));
  const auto n = static_cast<double>(x.size());
  double moments[5] = {};
  double beyond3 = 0, neighbours = 0, last = 0;
  for (const double value : x) {
    const double z = (value - 1) / 2;
    double power = 1;
    for (double& moment : moments) moment += power / n, power *= z;
    beyond3 += std::abs(z) > 3 ? 1 : 0;
    neighbours += z * last / n;
    last = z;
  }
  const double sigma = 1 / std::sqrt(n);  // 5 sigma below
  EXPECT_NEAR(moments[1], 0, 5 * sigma);
  EXPECT_NEAR(moments[2], 1, 5 * std::numbers::sqrt2 * sigma);
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15) * sigma);
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96) * sigma);
  EXPECT_NEAR(beyond3 / n, 0.0026998, 5 * std::sqrt(0.0027) * sigma);
  EXPECT_NEAR(neighbours, 0, 5 * sigma);
}

TEST(Recipes, UniformNumbersFillTheirIntervalEvenly) {
  const std::vector<double> x = values("uniform(-3,5)@5", spec_of("q", Format::kFp64, "bhsc", {1, 1, 4096, 64}));
  std::vector<double> bins(64);
  for (const double value : x) {
    ASSERT_TRUE(value >= -3 && value < 5);
    bins[static_cast<std::size_t>((value + 3) * 8)] += 1;
  }
  double chi2 = 0;
  for (const double count : bins) chi2 += (count - 4096) * (count - 4096) / 4096;
  EXPECT_LT(chi2, 63 + 6 * std::sqrt(126));
  EXPECT_GT(chi2, 63 - 5 * std::sqrt(126));
}

TEST(Recipes, RolesAndSeedsAreIndependent) {
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum / static_cast<double>(a.size());
  };
  const std::vector<double> q1 = values("normal@1", keys_spec(8000, Format::kFp32, "q"));
  EXPECT_NEAR(correlation(q1, values("normal@1", keys_spec(8000, Format::kFp32, "k"))), 0, 5 / std::sqrt(128000.0));
  EXPECT_NEAR(correlation(q1, values("normal@2", keys_spec(8000, Format::kFp32, "q"))), 0, 5 / std::sqrt(128000.0));
  EXPECT_NEAR(correlation(q1, q1), 1, 0.03);
}

TEST(Recipes, ShorterAndPackedCasesKeepTheValuesTheyShare) {
  for (const char* source : {"normal@3", "outlier_channel@3", "ties@3", "logit_offset@3", "mixed_exponents@3"}) {
    const std::vector<double> whole = values(source, spec_of("k", Format::kBf16, "bhsc", {2, 3, 10, 16}));
    const std::vector<double> shorter = values(source, spec_of("k", Format::kBf16, "bhsc", {2, 2, 6, 16}));
    InputSpec spec = spec_of("k", Format::kBf16, "thc", {14, 3, 16});
    spec.starts = {0, 4, 14};
    const std::vector<double> packed = values(source, spec);
    const auto at = [](std::size_t b, std::size_t h, std::size_t s, std::size_t heads, std::size_t len) {
      return ((b * heads + h) * len + s) * 16 + 5;
    };
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 3; ++h)
        for (std::size_t s = 0; s < (b == 0 ? 4U : 10U); ++s) {
          ASSERT_EQ(packed[((b * 4 + s) * 3 + h) * 16 + 5], whole[at(b, h, s, 3, 10)]) << source;
          if (h == 2 || s >= 6) continue;
          ASSERT_EQ(shorter[at(b, h, s, 2, 6)], whole[at(b, h, s, 3, 10)]) << source;
        }
  }
}

TEST(Recipes, NoRecipeGivesInfinityOrNanUnlessItsPurposeIsTo) {
  for (const Recipe& recipe : all_recipes()) {
    if (recipe.infinite || recipe.fits == Fits::kBoolMask) continue;
    std::vector<std::string> args;
    for (const RecipeArg& arg : recipe.args) args.push_back(shortest(arg.high));
    const std::string huge = with_args(recipe, args);
    for (const Format format : {Format::kFp32, Format::kTf32, Format::kFp16, Format::kBf16, Format::kE4m3,
                                Format::kE5m2, Format::kE8m0, Format::kFp64}) {
      if (recipe.fits == Fits::kPositions || recipe.fits == Fits::kKeyList) continue;  // integers
      const InputSpec spec = recipe.fits == Fits::kScoreMask ? spec_of("mask", format, "bhqk", {1, 1, 8, 32})
                             : recipe.fits == Fits::kHeads   ? spec_of("slopes", format, "bh", {2, 12})
                                                             : keys_spec(64, format);
      for (const std::string& source : {std::string(recipe.name), huge})
        for (const double value : values(source, spec)) ASSERT_TRUE(std::isfinite(value)) << source;
    }
  }
}

TEST(Recipes, ExactlyTheRecipesThatSayRangeLeaveTheRange) {
  for (const Recipe& recipe : all_recipes())
    EXPECT_EQ(recipe.range, recipe.name.find("range") != std::string_view::npos) << recipe.name;
  Case c;
  c.sources = {{"q", {"probe", {}, 1}}, {"k", {"normal", {}, 1}}};
  EXPECT_FALSE(leaves_range(c));
  c.sources[1].second.recipe = "range_ladder";
  EXPECT_TRUE(leaves_range(c));
}

TEST(Recipes, SlopesAreGeometricAndInterleavedOnesAreThoseOfAlibisCode) {
  const InputSpec heads = spec_of("slopes", Format::kFp64, "h", {12});
  const std::vector<double> plain = values("slopes", heads), interleaved = values("slopes(1)", heads);
  for (std::size_t h = 0; h < 12; ++h)
    EXPECT_NEAR(plain[h], std::exp2(-8.0 * static_cast<double>(h + 1) / 12), 1e-15);
  // get_slopes(12) of the paper's code: get_slopes(8) and get_slopes(16)[0::2][:4].
  const std::vector<double> expected{0.5,        0.25,        0.125,       0.0625,      0.03125, 0.015625, 0.0078125,
                                     0.00390625, 0.7071067811865476, 0.35355339059327384, 0.17677669529663692,
                                     0.08838834764831849};
  for (std::size_t h = 0; h < 12; ++h) EXPECT_NEAR(interleaved[h], expected[h], 1e-15) << h;
  EXPECT_EQ(values("slopes(1)", spec_of("slopes", Format::kFp32, "h", {8})),
            values("slopes", spec_of("slopes", Format::kFp32, "h", {8})));
}

TEST(Recipes, IndicesAreDistinctKeysOrOutsideAndSomeOfEach) {
  const InputSpec lists = spec_of("mask", Format::kInt32, "bhqx", {2, 3, 20, 50});
  for (const std::int64_t keys : {1, 2, 30, 64, 101}) {
    const std::vector<double> all = values("indices(" + std::to_string(keys) + ",0.2)@3", lists);
    std::int64_t inside = 0;
    std::set<double> outside;
    for (std::size_t row = 0; row < all.size(); row += 50) {
      std::set<double> seen;
      for (std::size_t n = row; n < row + 50; ++n) {
        const bool key = all[n] >= 0 && all[n] < static_cast<double>(keys);
        if (!key) outside.insert(all[n]);
        else ASSERT_TRUE(seen.insert(all[n]).second) << keys;
        inside += key;
      }
    }
    EXPECT_EQ(outside, (std::set<double>{-2147483647.0, -1, static_cast<double>(keys), 2147483647.0}));
    EXPECT_GE(inside, 120 * std::min<std::int64_t>(keys, 30) / 2);
  }
}

TEST(Recipes, SegmentsCountPositions) {
  const std::vector<double> ids = values("segments(5)", spec_of("seg_q", Format::kInt32, "bs", {2, 17}));
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], static_cast<double>(i % 17 / 5));
}

TEST(Recipes, DefaultsOfEveryRecipeAreLegal) {
  for (const Recipe& recipe : all_recipes()) {
    std::vector<std::string> args;
    for (const RecipeArg& arg : recipe.args) {
      EXPECT_TRUE(arg.low <= arg.default_value && arg.default_value <= arg.high) << recipe.name << " " << arg.name;
      args.push_back(std::to_string(arg.default_value));
    }
    const std::string full = with_args(recipe, args);
    EXPECT_TRUE(parse_source("q", full).args.empty()) << full;
    EXPECT_FALSE(recipe.summary.empty());
  }
}

class Logits : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, Logits, testing::Values(Format::kFp32, Format::kFp16, Format::kBf16),
                         [](const auto& test) { return std::string(assay::info(test.param).name); });

TEST_P(Logits, AnOffsetIsReachedToTwiceTheFormatsPrecision) {
  for (const double offset : {-20.0, -60.0, -1e3, -5e4, 1e3})
    for (const double logit : logits("probe", "logit_offset(" + std::to_string(offset) + ",0)@3", 50, GetParam()))
      ASSERT_NEAR(logit, offset, std::abs(offset) * 0x1p-16 + 1e-5);
  for (const double logit : logits("probe", "logit_offset(-60,2)@3", 500, GetParam())) {
    ASSERT_LT(logit, -50);
    ASSERT_GT(logit, -70);
  }
}

TEST_P(Logits, ALadderHasEveryPowerOfTwoInTurn) {
  const std::vector<double> up = logits("probe", "logit_ladder(-3,10)@3", 28, GetParam());
  for (std::size_t j = 0; j < up.size(); ++j)
    ASSERT_NEAR(up[j] / std::exp2(static_cast<double>(j % 14) - 3), 1, 0x1p-10) << j;
  const std::vector<double> down = logits("probe", "logit_ladder(0,4,-1)@3", 5, GetParam());
  EXPECT_NEAR(down[4], -16, 1e-3);
}

TEST_P(Logits, TileMaximaRiseAndFallByTheStep) {
  for (const std::size_t keys : {96U, 100U})
    for (const bool rising : {true, false}) {
      const std::vector<double> x = logits("probe", rising ? "rising(3,16,2)@4" : "falling(3,16,2)@4",
                                           static_cast<std::int64_t>(keys), GetParam());
      const std::size_t tiles = (keys + 15) / 16;
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(16 * tile);
        std::vector<double> part(begin, begin + std::min<std::ptrdiff_t>(16, x.end() - begin));
        std::sort(part.begin(), part.end());
        const double peak = 2 - 3 * static_cast<double>(rising ? tiles - 1 - tile : tile);
        EXPECT_NEAR(part.back() / std::numbers::ln2, peak, 1e-3) << tile;
        EXPECT_LT(part[part.size() - 2] / std::numbers::ln2, peak - 0.49) << tile;
        EXPECT_GT(part.front() / std::numbers::ln2, peak - 4.01) << tile;
      }
    }
}

TEST_P(Logits, TiesAreEqualUnderEveryQueryAndNearTiesAreOneStepApart) {
  const std::vector<double> equal = logits("normal@9", "ties@4", 40, GetParam());
  for (const double logit : equal) ASSERT_EQ(logit, equal[0]);
  EXPECT_NE(equal[0], 0);
  const Tensor near = filled("near_ties(0.5)@4", keys_spec(400, GetParam()));
  const Tensor same = filled("ties@4", keys_spec(400, GetParam()));
  int moved = 0;
  for (std::int64_t key = 0; key < 400; ++key) {
    std::int64_t distance = 0;
    for (std::int64_t c = 0; c < 16; ++c)
      distance += ulp_distance(GetParam(), near.view().code(key * 16 + c), same.view().code(key * 16 + c));
    ASSERT_LE(distance, 1);
    moved += static_cast<int>(distance);
  }
  EXPECT_NEAR(moved, 200, 50);
}

TEST_P(Logits, ASinkStandsOutOfTheNoise) {
  const std::vector<double> x = logits("probe(0.5)@1", "attention_sink(12,2)@4", 200, GetParam());
  for (std::size_t j = 0; j < x.size(); ++j)
    ASSERT_NEAR(x[j], j < 2 ? 12 : 0, 4) << j;  // noise 0.25 0.5 sqrt(14) N(0,1)
}

TEST_P(Logits, CancellingChannelsLeaveOnlyTheOtherHalfOfTheDotProduct) {
  const std::vector<double> q = values("twin_channels@1", keys_spec(1, GetParam(), "q"));
  const std::vector<double> k = values("cancelling_channels(64)@1", keys_spec(1, GetParam()));
  for (std::size_t c = 0; c < 8; c += 2) {
    EXPECT_EQ(q[c] * k[c] + q[c + 1] * k[c + 1], 0);
    EXPECT_NE(k[c], 0);
  }
}

TEST(Recipes, CancellingPairsSumToZero) {
  const std::vector<double> v = values("cancelling_pairs(3)@1", keys_spec(40));
  for (std::size_t key = 0; key < 40; key += 2)
    for (std::size_t c = 0; c < 16; ++c) ASSERT_EQ(v[key * 16 + c], -v[key * 16 + 16 + c]);
  EXPECT_NE(v[0], v[32]);
}

TEST(Recipes, TagsAreExactAndDistinctUpToTheirCapacity) {
  for (const Format format :
       {Format::kTf32, Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2, Format::kE8m0, Format::kUint8}) {
    std::set<double> seen;
    for (std::int64_t id = 0; id < tag_capacity(format); ++id) {
      const double tag = tag_value(format, id);
      ASSERT_EQ(round_to(format, tag), tag) << id;
      ASSERT_TRUE(seen.insert(tag).second) << info(format).name << " " << id;
    }
    EXPECT_EQ(tag_value(format, tag_capacity(format)), tag_value(format, 0));
  }
  EXPECT_EQ(tag_capacity(Format::kBf16), 4096);
  EXPECT_GT(tag_capacity(Format::kFp32), std::int64_t{1} << 27);
  const std::vector<double> tensor = values("tags", spec_of("v", Format::kBf16, "bhsc", {2, 2, 8, 8}));
  for (std::size_t i = 0; i < tensor.size(); ++i)
    ASSERT_EQ(tensor[i], tag_value(Format::kBf16, static_cast<std::int64_t>(i)));
}

TEST(Recipes, SubnormalNumbersAreSubnormalInTheirFormat) {
  for (const Format format : {Format::kFp64, Format::kFp32, Format::kFp16, Format::kBf16, Format::kE4m3}) {
    const Tensor tensor = filled("subnormal@1", keys_spec(40, format));
    std::set<std::uint64_t> codes;
    for (std::int64_t i = 0; i < 640; ++i) {
      codes.insert(tensor.view().code(i));
      ASSERT_TRUE(is_subnormal(format, tensor.view().code(i)));
    }
    EXPECT_GE(codes.size(), format == Format::kE4m3 ? 14U : 200U);
  }
}

TEST(Recipes, ExponentsStayInTheirRange) {
  std::set<int> seen;
  for (const double value : values("mixed_exponents(-4,3)@1", keys_spec(100, Format::kFp32))) {
    seen.insert(std::ilogb(value));
    ASSERT_TRUE(std::abs(value) >= 0x1p-4 && std::abs(value) <= 16) << value;
  }
  EXPECT_GE(seen.size(), 8U);
}

TEST(Recipes, StructuredValuesStandWhereTheyShould) {
  const std::vector<double> hot = values("one_hot(3)", keys_spec(40));
  for (std::size_t i = 0; i < hot.size(); ++i) ASSERT_EQ(hot[i], i % 16 == i / 16 % 16 ? 3 : 0);
  for (const double value : values("small_integers(2)@1", keys_spec(40)))
    ASSERT_TRUE(value == std::floor(value) && std::abs(value) <= 2);
  for (const double value : values("same_sign(-1)@1", keys_spec(40))) ASSERT_LT(value, 0);
  const std::vector<double> massive = values("massive(448,2,1)@1", keys_spec(3));
  EXPECT_EQ(std::count(massive.begin(), massive.end(), 448.0), 2);
  EXPECT_EQ(massive[4], 448);
  EXPECT_EQ(massive[12], 448);
  const std::vector<double> plain = values("normal@1", keys_spec(3)),
                            outlier = values("outlier_channel(32)@1", keys_spec(3));
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(outlier[i], i % 16 == 5 ? 32 * plain[i] : plain[i]);
  const std::vector<double> quiet = values("sink_values(0.5,1)@1", keys_spec(3));
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(quiet[i], i < 16 ? 0.5 * plain[i] : plain[i]);
}

TEST(Recipes, MasksKeepWhatTheySay) {
  const InputSpec spec = spec_of("mask", Format::kUint8, "bhqk", {2, 2, 60, 100});
  const auto mean = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  EXPECT_EQ(mean(values("all", spec)), 1);
  EXPECT_NEAR(mean(values("keep(0.3)@1", spec)), 0.3, 5 * std::sqrt(0.21 / 24000));
  const std::vector<double> rows = values("empty_rows(3)", spec);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], i / 100 % 60 % 3 == 0 ? 0 : 1);
  const std::vector<double> blocks = values("block(20,25)@1", spec);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t corner = i / 100 / 20 * 20 * 100 + i % 100 / 25 * 25;
    ASSERT_EQ(blocks[i], blocks[corner]);
  }
  EXPECT_NEAR(mean(blocks), 0.5, 0.35);
  const InputSpec scores = spec_of("mask", Format::kFp32, "bhqk", {2, 2, 60, 100});
  double dropped = 0;
  for (const double value : values("neg_inf(0.25)@1", scores)) {
    ASSERT_TRUE(value == 0 || value == -INFINITY);
    dropped += value == 0 ? 0 : 1;
  }
  EXPECT_NEAR(dropped / 24000, 0.25, 5 * std::sqrt(0.1875 / 24000));
  const std::vector<double> lowest = values("finite_min(1)@1", scores);
  EXPECT_EQ(lowest[0], -info(Format::kFp32).max_finite);
  EXPECT_EQ(values("neg_inf_rows(60)", scores)[99], -INFINITY);
  EXPECT_EQ(values("neg_inf_rows(60)", scores)[100], 0);
}

TEST(Recipes, ARecipeThatDoesNotFitIsRefused) {
  EXPECT_THROW(filled("keep", keys_spec(3)), InputError);
  EXPECT_THROW(filled("normal", spec_of("mask", Format::kUint8, "bhqk", {1, 1, 2, 2})), InputError);
  EXPECT_THROW(filled("ties", spec_of("mask", Format::kFp32, "bhqk", {1, 1, 2, 2})), InputError);
  EXPECT_THROW(filled("bias", keys_spec(3)), InputError);
  EXPECT_NO_THROW(filled("constant(-3)", spec_of("mask", Format::kFp32, "bhqk", {1, 1, 2, 2})));
}

}  // namespace
}  // namespace assay
