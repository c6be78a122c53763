// Every foreign judge: one pass and one fail worked by hand from its own project's rule.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/materialize.h"
#include "failure_catalog/judges/judge.h"
#include "failure_catalog/judges/pytorch_attention.h"
#include "kernels/runner.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Hand-made outputs: pairs of a value and a true number.
struct Pairs {
  std::vector<std::pair<double, double>> o, lse;
  Format format = Format::kBf16;
  std::string op = "attention";
};

OutputTruth truth_of(const std::string& role, Format format, const std::vector<std::pair<double, double>>& pairs) {
  OutputTruth truth;
  const auto count = static_cast<std::int64_t>(pairs.size());
  truth.layout = {.role = role, .format = format, .shape = {count}, .strides = {1}, .offset = 0, .storage = count};
  for (std::int64_t i = 0; i < count; ++i) {
    const double mid = pairs[static_cast<std::size_t>(i)].second;
    truth.element.push_back(i);
    truth.row.push_back(0);
    truth.mid.push_back(std::isfinite(mid) ? mid : 0);
    truth.radius.push_back(0);
    truth.classes.push_back(std::isnan(mid) ? assay::kNan
                            : mid == kInf   ? kPlusInf
                            : mid == -kInf  ? kMinusInf
                                            : kNumber);
  }
  return truth;
}

Tensor output_of(const OutputTruth& truth, const std::vector<std::pair<double, double>>& pairs) {
  Tensor output{truth.layout, std::vector<std::byte>(static_cast<std::size_t>(truth.layout.storage_bytes()))};
  for (std::size_t i = 0; i < pairs.size(); ++i)
    store_code(output.bytes.data(), truth.layout.format, static_cast<std::int64_t>(i),
               encode(truth.layout.format, pairs[i].first));
  return output;
}

bool passes(const std::string& name, const Pairs& pairs) {
  Truth truth;
  std::vector<Tensor> outputs;
  truth.outputs.push_back(truth_of("o", pairs.format, pairs.o));
  outputs.push_back(output_of(truth.outputs.back(), pairs.o));
  if (!pairs.lse.empty()) {
    truth.outputs.push_back(truth_of("lse", Format::kFp32, pairs.lse));
    outputs.push_back(output_of(truth.outputs.back(), pairs.lse));
  }
  const Case c{.op = pairs.op, .params = {}, .sources = {}, .overrides = {}};
  const Problem problem;
  const Judge* judge = find_judge(name);
  EXPECT_NE(judge, nullptr) << name;
  const std::optional<Opinion> opinion = judge->judge({c, problem, truth, outputs});
  EXPECT_TRUE(opinion.has_value()) << name;
  EXPECT_FALSE(opinion->reason.empty());
  return opinion->passes;
}

TEST(Judges, HaveASourceARuleAndCustomaryInputsForEveryFormat) {
  ASSERT_EQ(all_judges().size(), 10U);
  for (const Judge* judge : all_judges()) {
    EXPECT_FALSE(judge->source.empty()) << judge->name;
    EXPECT_FALSE(judge->rule.empty()) << judge->name;
    for (const Format format : {Format::kFp32, Format::kFp16, Format::kBf16, Format::kE4m3}) {
      const std::vector<Case> cases = customary_cases(*judge, format, 100);
      EXPECT_GE(cases.size(), 2U) << judge->name;
      EXPECT_EQ(cases.front().sources.front().second.seed, 100U);
      EXPECT_NE(cases.front().sources.at(1).second.seed, 100U);
    }
  }
}

TEST(Judges, AllcloseHundredthAndThousandth) {
  const Pairs half{.o = {{0.505, 0.5}}, .lse = {}, .format = Format::kFp16};
  EXPECT_TRUE(passes("allclose-1e-2", half));
  EXPECT_FALSE(passes("allclose-1e-3", half));
  EXPECT_TRUE(passes("allclose-1e-3", {.o = {{0.501, 0.5}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("allclose-1e-2", {.o = {{1, 1}}, .lse = {{2.1, 2.0}}}));
}

TEST(Judges, TorchTestingFollowsTheFormat) {
  EXPECT_TRUE(passes("torch-testing", {.o = {{1.015625, 1}}, .lse = {}}));
  EXPECT_FALSE(passes("torch-testing", {.o = {{1.0234375, 1}}, .lse = {}}));
  EXPECT_FALSE(passes("torch-testing", {.o = {{1.015625, 1}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("torch-testing", {.o = {{1 + 0x1p-18, 1}}, .lse = {{1.00003, 1}}}));
}

TEST(Judges, KernelBenchIsRelativeToTheOutputItself) {
  EXPECT_TRUE(passes("kernelbench", {.o = {{2.015625, 2}}, .lse = {}}));
  EXPECT_FALSE(passes("kernelbench", {.o = {{2.03125, 2}}, .lse = {}}));
  // 0.0099 + 0.0099 * 98 is not enough the other way round: |100 - 99| <= 0.01 + 0.01 * 100 and > 0.01 + 0.01 * 98.
  EXPECT_TRUE(passes("kernelbench", {.o = {{101, 100}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("kernelbench", {.o = {{98.9375, 100}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("kernelbench", {.o = {{kNaN, kNaN}}, .lse = {}}));
}

TEST(Judges, FlashInferBenchNeedsBothErrorsToBeLarge) {
  EXPECT_TRUE(passes("flashinfer-bench", {.o = {{0.0099, 0}, {2.015625, 2}}, .lse = {}}));
  EXPECT_FALSE(passes("flashinfer-bench", {.o = {{0.03, 0.01}}, .lse = {}}));
  EXPECT_FALSE(passes("flashinfer-bench", {.o = {{0, 0}}, .lse = {{-kInf, -kInf}}}));  // a correct LSE of an empty row
  EXPECT_TRUE(passes("flashinfer-bench", {.o = {{5, kNaN}}, .lse = {}}));              // NaN is more than nothing
}

TEST(Judges, FlashInferBench95ForgivesOneElementInTwenty) {
  Pairs pairs{.o = std::vector<std::pair<double, double>>(20, {1, 1}), .lse = {}};
  pairs.o[3] = {9, 1};
  EXPECT_TRUE(passes("flashinfer-bench-95", pairs));
  EXPECT_FALSE(passes("flashinfer-bench", pairs));
  pairs.o[4] = {9, 1};
  EXPECT_FALSE(passes("flashinfer-bench-95", pairs));
}

TEST(Judges, FlashMlaHasThreeParts) {
  const auto o = [](std::vector<std::pair<double, double>> pairs) {
    return Pairs{.o = std::move(pairs), .lse = {}, .format = Format::kFp16};
  };
  EXPECT_TRUE(passes("flashmla", o({{1.00390625, 1}, {1, 1}})));
  EXPECT_FALSE(passes("flashmla", o({{1.00390625, 1}, {1.00390625, 1}})));  // the distance alone
  EXPECT_FALSE(passes("flashmla", o({{0.02, 0.01}, {100, 100}})));          // an element alone
  EXPECT_FALSE(passes("flashmla", o({{kInf, 1}, {100, 100}})));             // a misplaced infinity alone
  EXPECT_TRUE(passes("flashmla", {.o = {{1, 1}}, .lse = {{kInf, kInf}, {8, 8}}}));
  EXPECT_TRUE(passes("flashmla", {.o = {{1, 1}}, .lse = {{8.0009, 8}}}));
  EXPECT_FALSE(passes("flashmla", {.o = {{1, 1}}, .lse = {{8.001, 8}}}));
}

TEST(Judges, CosineSeesNoScale) {
  EXPECT_TRUE(passes("cosine-0.99", {.o = {{2, 1}, {2, 1}, {2, 1}}, .lse = {}}));
  EXPECT_FALSE(passes("cosine-0.99", {.o = {{1, 1}, {0, 1}}, .lse = {}}));
  EXPECT_FALSE(passes("cosine-0.99", {.o = {{kNaN, 1}, {1, 1}}, .lse = {}}));
}

TEST(Judges, GpuemuIsAbsoluteAndTakesNoNaN) {
  EXPECT_TRUE(passes("gpuemu", {.o = {{0.0499, 0}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("gpuemu", {.o = {{0.0501, 0}}, .lse = {}, .format = Format::kFp16}));
  EXPECT_FALSE(passes("gpuemu", {.o = {{0.0499, 0}}, .lse = {}, .format = Format::kFp32}));
  EXPECT_FALSE(passes("gpuemu", {.o = {{0.0499, 0}}, .lse = {}, .format = Format::kFp16, .op = "merge"}));
  EXPECT_FALSE(passes("gpuemu", {.o = {{kNaN, kNaN}}, .lse = {}}));
}

/// The judge's opinion of outputs on a case.
Opinion flash_attention(const std::string& line, double first_element) {
  const Case c = parse_case(line);
  const Problem problem = materialize(c);
  const Evaluation evaluation = op_named(c.op).evaluate(problem, {}, Level::kT0);
  std::vector<Tensor> outputs;
  for (const OutputTruth& truth : evaluation.truth.outputs) {
    Tensor& output = outputs.emplace_back(
        Tensor{truth.layout, std::vector<std::byte>(static_cast<std::size_t>(truth.layout.storage_bytes()))});
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const double value = i == 0 && truth.layout.role == "o" ? first_element : truth.mid[i];
      store_code(output.bytes.data(), truth.layout.format, truth.element[i], encode(truth.layout.format, value));
    }
  }
  return find_judge("flash-attention-2x")->judge({c, problem, evaluation.truth, outputs}).value();
}

TEST(Judges, FlashAttentionAllowsTwiceTheErrorOfEagerPyTorch) {
  // One channel. Logits 1 and 0.99609375 are bf16 numbers and the weight 0.500977 rounds to 0.5, as the reference does.
  const std::string exact =
      "attention skv=2 d=1 scale=1 q=ones k=ones v=constant(0) set=k[0,0,1,0]:0.99609375 set=v[0,0,0,0]:1";
  EXPECT_TRUE(flash_attention(exact, 0.5).passes);
  EXPECT_FALSE(flash_attention(exact, 0.50390625).passes);
  // Logits 10.03125 and 0: the first is rounded to 10, P to 1 either way. At 2 and 1 - 2^-8 the scaled k = 2.015625 *
  // 0.99609375 is rounded.
  const std::string rounded =
      "attention skv=2 d=1 scale=1 q=ones k=ones v=constant(0) set=q[0,0,0,0]:1.0078125 set=k[0,0,0,0]:1.0078125 "
      "set=k[0,0,1,0]:0 set=v[0,0,0,0]:1";
  // The logit 1.01568604 rounds to 1.015625: the weight is 0.734118 to 0.734130, bf16 0.734375 both times; no error is
  // allowed.
  EXPECT_TRUE(flash_attention(rounded, 0.734375).passes);
  EXPECT_FALSE(flash_attention(rounded, 0.73828125).passes);
  EXPECT_TRUE(flash_attention(exact + " dtype=e4m3 set=k[0,0,1,0]:1", 0.5).passes);
}

TEST(Judges, FlashAttentionsComparatorRoundsEveryStep) {
  // scale 0.1 in fp32; k = 1 becomes bf16(0.1) = 0.10009765625; q = 100: the score 10.009765625 rounds to 10. With the
  // other key's logit 0 and V = (0, 1), the weight of the second is 4.5398e-5, bf16 4.5299530e-5; unrounded it would
  // be 4.4957e-5 for the logit 10.0097656.
  const Case c =
      parse_case("attention skv=2 d=1 scale=0.1 q=constant(100) k=ones v=ones set=k[0,0,1,0]:0 set=v[0,0,0,0]:0");
  const std::vector<double> o = pytorch_attention(materialize(c), Format::kBf16, Format::kBf16);
  ASSERT_EQ(o.size(), 1U);
  EXPECT_EQ(o[0], round_to(Format::kBf16, 4.539786870243440e-05));
  const std::vector<double> eight = pytorch_attention(materialize(c), Format::kBf16, Format::kE4m3);
  EXPECT_EQ(eight[0], 0);  // below half of e4m3's smallest number
}

TEST(Judges, FlashAttentionSaysNothingOfOtherOpsAndFp32) {
  for (const char* line : {"softmax n=3", "attention sq=1 skv=1 d=8 dtype=fp32"}) {
    const Case c = parse_case(line);
    const Problem problem = materialize(c);
    const Truth truth = op_named(c.op).evaluate(problem, {}, Level::kT0).truth;
    EXPECT_FALSE(find_judge("flash-attention-2x")->judge({c, problem, truth, {}}).has_value()) << line;
  }
}

}  // namespace
}  // namespace assay
