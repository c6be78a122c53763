// Materialising: every byte of every input is the recipe's, the file's, an override's or the poison's.
#include "cases/materialize.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "cases/file_source.h"
#include "cases/poison.h"
#include "cases/recipes.h"
#include "cases/safetensors.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// A test op: `a` with permuted, gapped and offset strides; `e` expanded along its first axis; `list` with fixed
/// values.
std::vector<InputSpec> strided_inputs(const Params& params) {
  const std::string* name = params.find("dtype");
  const Format format = name ? format_from_name(*name).value() : Format::kBf16;
  const auto spec = [](TensorLayout layout, std::string axes, std::string source) {
    InputSpec out;
    out.layout = std::move(layout);
    out.axes = std::move(axes);
    out.default_source = std::move(source);
    return out;
  };
  InputSpec list = spec({"list", Format::kInt32, {2, 2}, {3, 1}, 1, 8}, "xx", "");
  list.values = {5, -6, 7, 8};
  return {spec({"a", format, {2, 3, 5}, {11, 40, 2}, 7, 150}, "hsc", "tags"),
          spec({"e", Format::kFp32, {4, 6}, {0, 1}, 0, 6}, "sc", "normal@2"), list};
}
constexpr ParamInfo kStridedParams[] = {{"dtype", "bf16", "format of a"}};
Op strided_op() {
  Op op{};
  op.name = "strided_test";
  op.summary = "layouts for this test";
  op.params = kStridedParams;
  op.canonical = [](const Params& params) { return params; };
  op.inputs = strided_inputs;
  op.outputs = [](const Params&) { return std::vector<TensorLayout>{}; };
  return op;
}
const Op kStrided = strided_op();
const RegisterOp kRegister(kStrided);

const Tensor& input(const Problem& problem, std::string_view role) {
  for (const Tensor& tensor : problem.inputs)
    if (tensor.layout.role == role) return tensor;
  throw InputError("no such tensor");
}

std::string error_of(const std::string& line) {
  try {
    materialize(parse_case(line));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Materialize, UsedElementsHoldTheRecipeAndEveryOtherOneThePoison) {
  for (const char* format_name : {"fp64", "fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e8m0"})
    for (const char* poison : {"zero", "nan", "inf", "max", "tag"}) {
      const Case c = parse_case(std::string("strided_test dtype=") + format_name + " a=ones poison=" + poison);
      const Tensor a = input(materialize(c), "a");
      std::set<std::int64_t> used;
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t s = 0; s < 3; ++s)
          for (std::int64_t d = 0; d < 5; ++d) used.insert(a.view().element(h, s, d));
      ASSERT_EQ(used.size(), 30U);
      const std::uint64_t stale = poison_code(a.layout.format, c.poison);
      for (std::int64_t i = 0; i < a.layout.storage; ++i)
        ASSERT_EQ(a.view().code(i), used.contains(i) ? encode(a.layout.format, 1.0) : stale) << format_name << " " << i;
    }
}

TEST(Materialize, PoisonIsTheSpecialValueOfTheFormatOrItsNearestRelative) {
  for (const Format format :
       {Format::kFp64, Format::kFp32, Format::kTf32, Format::kFp16, Format::kBf16, Format::kE5m2}) {
    EXPECT_TRUE(is_nan(format, poison_code(format, Poison::kNan)));
    EXPECT_TRUE(is_infinite(format, poison_code(format, Poison::kInf)));
    EXPECT_EQ(decode(format, poison_code(format, Poison::kMax)), info(format).max_finite);
    EXPECT_EQ(poison_code(format, Poison::kZero), 0U);
    EXPECT_LT(decode(format, poison_code(format, Poison::kTag)), -190);
  }
  EXPECT_TRUE(is_nan(Format::kE4m3, poison_code(Format::kE4m3, Poison::kInf)));
  EXPECT_EQ(decode(Format::kE4m3, poison_code(Format::kE4m3, Poison::kTag)), -208);
  EXPECT_TRUE(is_nan(Format::kE8m0, poison_code(Format::kE8m0, Poison::kNan)));
  EXPECT_EQ(poison_code(Format::kE8m0, Poison::kZero), 0U);
  EXPECT_EQ(poison_code(Format::kUint8, Poison::kNan), 255U);
  EXPECT_EQ(poison_code(Format::kInt32, Poison::kInf), 0x7fffffffU);
}

TEST(Materialize, FixedValuesAndTheirPaddingAreWritten) {
  const Tensor list = input(materialize(parse_case("strided_test poison=zero")), "list");
  const std::vector<std::int32_t> want{0, 5, -6, 0, 7, 8, 0, 0};
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(static_cast<std::int32_t>(list.view().code(i)), want[static_cast<std::size_t>(i)]);
}

TEST(Materialize, OverridesReplaceSingleElementsInOrder) {
  const Problem problem = materialize(
      parse_case("strided_test dtype=fp16 set=a[0,0,0]:nan set=a[1,2,4]:-inf set=a[0,1,0]:-0 set=a[0,2,0]:-min_sub "
                 "set=a[1,0,0]:max set=a[1,0,1]:0x1234 set=a[1,0,2]:0.1 set=a[1,0,2]:0.2"));
  const TensorView a = input(problem, "a").view();
  EXPECT_TRUE(is_nan(Format::kFp16, a.code(a.element(0, 0, 0))));
  EXPECT_EQ(a.code(a.element(1, 2, 4)), 0xfc00U);
  EXPECT_EQ(a.code(a.element(0, 1, 0)), 0x8000U);
  EXPECT_EQ(a.code(a.element(0, 2, 0)), 0x8001U);
  EXPECT_EQ(a.code(a.element(1, 0, 0)), 0x7bffU);
  EXPECT_EQ(a.code(a.element(1, 0, 1)), 0x1234U);
  EXPECT_EQ(a.code(a.element(1, 0, 2)), encode(Format::kFp16, 0.2));
  EXPECT_EQ(a.code(a.element(1, 1, 0)), input(materialize(parse_case("strided_test dtype=fp16")), "a").view().code(58));
}

TEST(Materialize, AnOverrideThatTheTensorDoesNotHaveIsRefused) {
  Case c = parse_case("strided_test");
  c.overrides = {{"a", {0, 0, 5}, "1"}};
  EXPECT_THROW(materialize(c), InputError);
  c.overrides = {{"z", {0}, "1"}};
  EXPECT_THROW(materialize(c), InputError);
  c.overrides = {{"a", {0, 0, 0}, "red"}};
  EXPECT_THROW(materialize(c), InputError);
}

TEST(Materialize, RowsBehindTheLengthOfAPaddedSequenceAreUnused) {
  const Problem problem = materialize(parse_case(
      "attention b=3 hq=2 hkv=1 sq=4 skv=6 d=8 batch=padded kv_lens=0,5,6 pad_rows=1 pad_dim=2 k=ones poison=tag"));
  const TensorView k = input(problem, "k").view();
  const std::int64_t lens[] = {0, 5, 6};
  std::int64_t ones = 0;
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t s = 0; s < 6; ++s)
      for (std::int64_t c = 0; c < 8; ++c) ASSERT_EQ(k.value(k.element(b, 0, s, c)), s < lens[b] ? 1 : -208);
  for (std::int64_t i = 0; i < k.layout->storage; ++i) ones += k.value(i) == 1 ? 1 : 0;
  EXPECT_EQ(ones, 11 * 8);
}

TEST(Materialize, PackedPaddedAndDenseBatchesHaveTheSameValues) {
  const std::string sizes = "attention b=2 hq=3 sq=7 skv=9 d=16 ";
  const Problem dense = materialize(parse_case(sizes + "layout=bshd"));
  const Problem packed = materialize(parse_case(sizes + "batch=packed q_lens=3,7 kv_lens=9,4"));
  const Problem padded = materialize(parse_case(sizes + "batch=padded q_lens=3,7 kv_lens=9,4"));
  const TensorView d = input(dense, "k").view(), t = input(packed, "k").view(), p = input(padded, "k").view();
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t s = 0; s < (b == 0 ? 9 : 4); ++s)
      for (std::int64_t h = 0; h < 3; ++h) {
        ASSERT_EQ(d.code(d.element(b, h, s, 3)), p.code(p.element(b, h, s, 3)));
        ASSERT_EQ(d.code(d.element(b, h, s, 3)), t.code(t.element(b * 9 + s, h, 3)));
      }
}

TEST(Materialize, TheScaleOfTheCaseEntersTheRecipesThatPlaceLogits) {
  for (const char* scale : {"", " scale=-0.5", " scale=0"}) {
    const Problem problem =
        materialize(parse_case(std::string("attention skv=3 d=16 q=probe k=logit_offset(8,0)@1") + scale));
    const TensorView k = input(problem, "k").view();
    const double wanted = std::string(scale).empty() ? 8 / (0.25 * 64) : scale[7] == '-' ? -8 / (0.5 * 64) : 0;
    EXPECT_EQ(k.value(0), wanted) << scale;
  }
}

class FileSource : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("assay_file_source_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    for (std::size_t i = 0; i < 24; ++i)
      store_code(bytes_.data(), Format::kFp32, static_cast<std::int64_t>(i), 1000 + i);
    const SafetensorsTensor tensors[] = {{"e", "F32", {4, 6}, bytes_},
                                         {"short", "F32", {4, 5}, std::span(bytes_).first(80)}};
    write_safetensors(folder_ / "t.safetensors", tensors, {});
    ASSERT_EQ(::setenv("ASSAY_DATA", folder_.c_str(), 1), 0);
  }
  void TearDown() override {
    ::unsetenv("ASSAY_DATA");
    std::filesystem::remove_all(folder_);
  }
  std::string hash() const { return content_hash(bytes_); }
  std::filesystem::path folder_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(96);
};

TEST_F(FileSource, TheBytesOfAFileReachTheTensor) {
  const std::string line = "strided_test e=file(t.safetensors,e," + hash() + ")";
  EXPECT_EQ(print_case(parse_case(line)), "strided_test a=tags e=file(t.safetensors,e," + hash() + ")");
  const Problem problem = materialize(parse_case(line));
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(input(problem, "e").view().code(i), 1000U + static_cast<unsigned>(i));
}

TEST_F(FileSource, AnythingThatDoesNotMatchIsNamed) {
  const auto expect = [&](const std::string& source, std::initializer_list<const char*> parts) {
    const std::string error = error_of("strided_test " + source);
    for (const char* part : parts) EXPECT_NE(error.find(part), std::string::npos) << error << "\n" << part;
  };
  expect("e=file(none.safetensors,e," + hash() + ")", {"none.safetensors", "no such file; tried", folder_.c_str()});
  expect("e=file(t.safetensors,x," + hash() + ")", {"t.safetensors", "no tensor 'x'"});
  expect("e=file(t.safetensors,short," + hash() + ")", {"[4,5]", "[4,6]"});
  expect("a=file(t.safetensors,e," + hash() + ")", {"is F32", "needs BF16"});
  expect("e=file(t.safetensors,e,0123456789abcdef)", {"have hash ", hash().c_str()});
}

TEST(Materialize, RealActivationsOfTheRepositoryCanBeRead) {
  const std::string path = "cases/real/minilm_l6_bf16.safetensors";
  const SafetensorsFile file(find_data_file(path));
  ASSERT_NE(file.find("layer3.k"), nullptr);
  std::string line = "attention hq=12 sq=202 d=32";
  for (const char* role : {"q", "k", "v"}) {
    const std::string name = std::string("layer3.") + role;
    line +=
        std::string(" ") + role + "=file(" + path + "," + name + "," + content_hash(file.read(*file.find(name))) + ")";
  }
  const Problem problem = materialize(parse_case(line));
  const Tensor& k = input(problem, "k");
  double energy = 0;
  for (std::int64_t i = 0; i < k.layout.count(); ++i) energy += k.view().value(i) * k.view().value(i);
  EXPECT_GT(energy / static_cast<double>(k.layout.count()), 0.01);
  EXPECT_LT(energy / static_cast<double>(k.layout.count()), 100);
}

TEST(FillDeathTest, ASpecWithoutOneLetterPerAxisIsAProgrammersMistake) {
  InputSpec spec;
  spec.layout = {.role = "o", .format = Format::kBf16, .shape = {2, 3}, .strides = {3, 1}, .offset = 0, .storage = 6};
  std::vector<std::byte> storage(12);
  EXPECT_DEATH(fill_from_recipe({.recipe = "ones", .args = {}, .seed = 0}, spec, 1, storage.data()), "0 axis letters for 2");
}

}  // namespace
}  // namespace assay
