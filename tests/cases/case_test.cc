// Case lines: parse and print are inverse, and everything malformed is one clear error.
#include "cases/case.h"

#include <gtest/gtest.h>

#include <random>

#include "cases/recipes.h"
#include "cases/text.h"
#include "oracle/error.h"

namespace assay {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

template <class Item, std::size_t kSize>
Item one_of(Random& random, const Item (&items)[kSize]) {
  return items[random() % kSize];
}

/// A legal source for a tensor that `fits` says something about, with random arguments and seed.
std::string random_source(Random& random, Fits fits) {
  const std::vector<Recipe>& all = all_recipes();
  const Recipe* recipe;
  do recipe = &all[random() % all.size()];
  while (recipe->fits != fits && !(fits == Fits::kVectors && recipe->fits == Fits::kNumbers));
  std::string text(recipe->name);
  std::vector<double> values;
  std::vector<std::string> args;
  const std::size_t count = random() % (recipe->args.size() + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const RecipeArg& arg = recipe->args[i];
    double low = std::max(arg.low, -1e6);
    if (recipe->ordered && i == 1) low = std::max(low, values[0]);
    if (recipe->ordered && i == 0) low = std::min(low, arg.default_value);
    const double high = recipe->ordered && i == 0 ? std::min(arg.default_value, recipe->args[1].default_value)
                                                  : std::min(arg.high, 1e6);
    const double x = low + (high - low) * unit_uniform(random());
    values.push_back(arg.integer ? static_cast<double>(static_cast<std::int64_t>(x)) : x);
    args.push_back(shortest(values.back()));
  }
  if (count > 0) text.append("(").append(joined(args)).append(")");
  if (random() % 4 != 0) text += "@" + std::to_string(random() >> (random() % 64));
  return text;
}

std::string random_line(Random& random) {
  const std::int64_t b = pick(random, 1, 3), hkv = pick(random, 1, 3), hq = hkv * pick(random, 1, 3);
  const std::int64_t sq = pick(random, 1, 40), skv = pick(random, 1, 90), d = pick(random, 1, 140);
  std::vector<std::string> fields{"b=" + std::to_string(b),
                                  "hq=" + std::to_string(hq),
                                  "hkv=" + std::to_string(hkv),
                                  "sq=" + std::to_string(sq),
                                  "skv=" + std::to_string(skv),
                                  "d=" + std::to_string(d),
                                  "dtype=" + one_of<std::string>(random, {"fp32", "fp16", "bf16"})};
  const auto mask = one_of<std::string>(random, {"none", "causal", "bool", "additive", "causal+bool"});
  fields.push_back("mask=" + mask);
  if (random() % 3 == 0) fields.push_back("scale=" + shortest(static_cast<float>(unit_uniform(random()) - 0.5)));
  if (random() % 3 == 0) fields.push_back("window=" + std::to_string(pick(random, -1, 20)) + ",-1");
  for (const std::string role : {"q", "k"})
    if (random() % 4 != 0) fields.push_back(role + "=" + random_source(random, Fits::kVectors));
  fields.push_back(random() % 8 == 0 ? "v=file(dir/some.safetensors,layer0.v,0123456789abcdef)"
                                     : "v=" + random_source(random, Fits::kVectors));
  if (mask.ends_with("bool")) fields.push_back("mask.data=" + random_source(random, Fits::kBoolMask));
  if (mask == "additive") fields.push_back("mask.data=" + random_source(random, Fits::kScoreMask));
  for (std::int64_t i = pick(random, 0, 3); i > 0; --i) {
    const auto value = one_of<std::string>(
        random, {"nan", "inf", "-inf", "-0", "max", "-max", "min_sub", "-min_sub", "0x7f", "0xC0DE", "1.50", "-3e-2"});
    fields.push_back("set=k[" + std::to_string(pick(random, 0, b - 1)) + "," +
                     std::to_string(pick(random, 0, hkv - 1)) + "," + std::to_string(pick(random, 0, skv - 1)) + "," +
                     std::to_string(pick(random, 0, d - 1)) + "]:" + value);
  }
  if (random() % 2 == 0)
    fields.push_back("poison=" + one_of<std::string>(random, {"zero", "nan", "inf", "max", "tag"}));
  std::shuffle(fields.begin(), fields.end(), random);
  std::string line = "attention";
  for (const std::string& field : fields) line += (random() % 8 == 0 ? "  " : " ") + field;
  return line;
}

std::string error_of(std::string_view line) {
  try {
    parse_case(line);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Case, ALineIsReadIntoItsParts) {
  const Case c = parse_case(
      "attention hq=8 hkv=2 sq=1 skv=4096 d=128 mask=causal q=normal@7 k=outlier_channel(30.0,5)@8 v=normal(2)@9 "
      "set=k[0,0,17,3]:nan set=v[0,1,0,0]:0x00FF poison=tag");
  EXPECT_EQ(c.op, "attention");
  ASSERT_EQ(c.sources.size(), 3U);
  EXPECT_EQ(c.sources[1].first, "k");
  EXPECT_EQ(c.sources[1].second, (Source{"outlier_channel", {"30", "5"}, 8}));
  ASSERT_EQ(c.overrides.size(), 2U);
  EXPECT_EQ(c.overrides[0], (Override{"k", {0, 0, 17, 3}, "nan"}));
  EXPECT_EQ(c.overrides[1].value, "0xff");
  EXPECT_EQ(c.poison, Poison::kTag);
}

TEST(Case, DefaultsOfSourcesArePrintedAndDefaultsOfArgumentsAreNot) {
  EXPECT_EQ(print_case(parse_case("attention k=ones@5 poison=nan mask=none sq=4 d=64 set=q[0,0,3,1]:1.00")),
            "attention sq=4 q=normal@1 k=ones v=normal@3 set=q[0,0,3,1]:1");
  EXPECT_EQ(print_case(parse_case("attention q=normal(1,0)@07 k=normal(1e0,0.5) v=uniform(-1)@2")),
            "attention q=normal@7 k=normal(1,0.5)@0 v=uniform@2");
}

TEST(Case, ARoleNamedLikeAParameterTakesItsSourceUnderRoleDotData) {
  EXPECT_EQ(print_case(parse_case("attention mask.data=keep(0.25)@3 mask=causal+bool sq=2 set=mask[0,0,1,0]:1")),
            "attention sq=2 mask=causal+bool q=normal@1 k=normal@2 v=normal@3 mask.data=keep(0.25)@3 "
            "set=mask[0,0,1,0]:1");
}

TEST(Case, ParseAndPrintAreInverseOnRandomCases) {
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    const std::string line = random_line(random);
    Case c;
    ASSERT_NO_THROW(c = parse_case(line)) << line << "\n" << error_of(line);
    const std::string printed = print_case(c);
    ASSERT_EQ(parse_case(printed), c) << line;
    ASSERT_EQ(print_case(parse_case(printed)), printed) << line;
  }
}

TEST(Case, TheOrderOfFieldsDoesNotMatterExceptForOverrides) {
  EXPECT_EQ(parse_case("attention sq=2 d=8 q=ones set=k[0,0,0,0]:1 set=k[0,0,0,0]:2"),
            parse_case("attention set=k[0,0,0,0]:1 q=ones d=8 set=k[0,0,0,0]:2 sq=2"));
  EXPECT_NE(parse_case("attention set=k[0,0,0,0]:1 set=k[0,0,0,0]:2"),
            parse_case("attention set=k[0,0,0,0]:2 set=k[0,0,0,0]:1"));
}

TEST(Case, EveryMalformedFieldIsNamedWithItsValue) {
  struct Row {
    const char* line;
    const char* names;
    const char* says;
  };
  const Row rows[] = {
      {"", "case", "empty line"},
      {"attentoin q=normal@1", "attentoin", "unknown"},
      {"attention q", "'q'", "not key=value"},
      {"attention sq=4 sq=4", "sq=4", "given twice"},
      {"attention q=ones q=ones", "q=ones", "given twice"},
      {"attention poison=nan poison=nan", "poison=nan", "given twice"},
      {"attention colour=red", "colour=red", "unknown key"},
      {"attention mask.data=all", "mask.data=all", "unknown key"},
      {"attention cu_seqlens_q=ones batch=packed", "cu_seqlens_q=ones", "unknown key"},
      {"attention sq=x", "sq=x", "integer"},
      {"attention hq=3 hkv=2", "hkv=2", "divide"},
      {"attention q=gauss@1", "q=gauss@1", "unknown recipe 'gauss'"},
      {"attention q=", "q=", "unknown recipe ''"},
      {"attention q=normal(1", "q=normal(1", "parenthesis"},
      {"attention q=normal(1)2", "q=normal(1)2", "expected @seed"},
      {"attention q=normal()@1", "q=normal()@1", "std '' is not a number"},
      {"attention q=normal(1,2,3)@1", "normal(1,2,3)", "at most 2"},
      {"attention q=normal(-1)@1", "normal(-1)", "must lie in [0,"},
      {"attention q=normal(nan)@1", "normal(nan)", "not a number"},
      {"attention q=normal(1e999)@1", "normal(1e999)", "not a number"},
      {"attention q=uniform(2,1)@1", "uniform(2,1)", "lo is above hi"},
      {"attention q=uniform(2)@1", "uniform(2)", "lo is above hi"},
      {"attention k=rising(4,1.5)", "rising(4,1.5)", "tile '1.5' must be an integer"},
      {"attention q=normal@", "q=normal@", "seed ''"},
      {"attention q=normal@-1", "q=normal@-1", "seed '-1'"},
      {"attention q=normal@1.5", "q=normal@1.5", "seed '1.5'"},
      {"attention q=normal@18446744073709551616", "18446744073709551616", "seed"},
      {"attention q=keep(0.5)@1", "q=keep@1", "bool masks only"},
      {"attention q=neg_inf@1", "q=neg_inf@1", "additive masks only"},
      {"attention mask=bool mask.data=normal@1", "mask.data=normal@1", "bool mask needs"},
      {"attention mask=additive mask.data=ties@1", "mask.data=ties@1", "positions and channels"},
      {"attention q=file(a,b)", "file(a,b)", "path, tensor and hash"},
      {"attention q=file(a,,0123456789abcdef)", "file(a,,", "one is empty"},
      {"attention q=file(a,b,0123)", "file(a,b,0123)", "hash '0123'"},
      {"attention q=file(a,b,0123456789abcdef)@1", "q=file", "no seed"},
      {"attention poison=red", "poison=red", "zero, nan, inf, max or tag"},
      {"attention set=k:1", "set=k:1", "role[index,...]:value"},
      {"attention set=z[0]:1", "set=z[0]:1", "'z'"},
      {"attention set=rows[0,0]:1 rows=1", "set=rows[0,0]:1", "'rows'"},
      {"attention set=k[0,0,0]:1", "set=k[0,0,0]:1", "needs 4 indices"},
      {"attention set=k[0,0,0,0,0]:1", "set=k[0,0,0,0,0]:1", "needs 4 indices"},
      {"attention set=k[0,0,1,0]:1", "set=k[0,0,1,0]:1", "index 1 of axis 2"},
      {"attention set=k[0,-1,0,0]:1", "set=k[0,-1,0,0]:1", "index -1 of axis 1"},
      {"attention set=k[0,0,,0]:1", "set=k[0,0,,0]:1", "'' is not an index"},
      {"attention set=k[0,0,0,0]:red", "set=red", "not a number"},
      {"attention set=k[0,0,0,0]:", "set=:", "not a number"},
      {"attention set=k[0,0,0,0]:0x10000", "set=0x10000", "not a code in bf16"},
      {"attention set=k[0,0,0,0]:1e39", "set=1e39", "largest finite"},
      {"attention mask=bool set=mask[0,0,0,0]:nan", "set=nan", "not an integer"},
      {"attention mask=bool set=mask[0,0,0,0]:256", "set=256", "not an integer"},
  };
  for (const Row& row : rows) {
    const std::string error = error_of(row.line);
    EXPECT_NE(error.find(row.names), std::string::npos) << row.line << "\n" << error;
    EXPECT_NE(error.find(row.says), std::string::npos) << row.line << "\n" << error;
  }
}

TEST(Case, GarbageIsAnInputErrorOrACase) {
  Random random(3);
  int cases = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string line = random_line(random);
    for (std::int64_t edits = pick(random, 1, 4); edits > 0 && !line.empty(); --edits) {
      const std::size_t at = random() % line.size();
      switch (random() % 4) {
        case 0: line.erase(at, 1 + random() % 5); break;
        case 1: line.insert(at, 1, "=@()[],:.-0129eEx \n\xff"[random() % 20]); break;
        case 2: line[at] = static_cast<char>(random()); break;
        default: line.insert(at, line.substr(random() % line.size(), 9));
      }
    }
    try {
      const Case c = parse_case(line);
      ++cases;
      ASSERT_EQ(parse_case(print_case(c)), c) << line;
    } catch (const InputError& error) {
      ASSERT_NE(std::string_view(error.what()).find("case: "), std::string_view::npos) << line;
    }
  }
  EXPECT_GT(cases, 500);
  EXPECT_LT(cases, 19000);
}

TEST(Case, AnErrorTextIsPrintableAndShort) {
  const std::string error = error_of("attention q=" + std::string(100000, '\x01'));
  EXPECT_LT(error.size(), 1000U);
  EXPECT_NE(error.find("\\x01"), std::string::npos);
}

}  // namespace
}  // namespace assay
