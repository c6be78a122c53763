// Manifests: what a good one means, and an error that names file, field and value for each thing that can be wrong.
#include "plugin/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

std::string kernel_with(const std::string& members) {
  return R"({"kernels": [{"name": "mine", "op": "attention", "formats": ["bf16"])" +
         (members.empty() ? "" : ", " + members) + "}]}";
}

std::string error_of(const std::string& text) {
  try {
    read_manifest(text, "my.so");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

Params params_of(std::initializer_list<std::pair<std::string, std::string>> items) {
  Params params;
  for (const auto& [key, value] : items) params.set(key, value);
  return params;
}

TEST(Manifest, SaysWhatAKernelIsAndHowItComputes) {
  const auto kernels = read_manifest(R"({"kernels": [
      {"name": "a", "op": "attention", "formats": ["bf16", "fp16"], "summary": "one", "device": "cuda", "alignment": 16,
       "arithmetic": {"qk": "block_hopper", "p_format": "bf16", "splits": 1}},
      {"name": "b", "op": "softmax", "formats": ["fp32"]}]})",
                                     "my.so");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].identity.name, "a");
  EXPECT_EQ(kernels[0].identity.op, "attention");
  EXPECT_EQ(kernels[0].identity.summary, "one");
  EXPECT_EQ(kernels[0].identity.dtypes, (std::vector<std::string>{"bf16", "fp16"}));
  EXPECT_EQ(kernels[0].identity.plugin, "my.so");
  EXPECT_TRUE(kernels[0].identity.device);
  EXPECT_EQ(kernels[0].alignment, 16);
  const Arithmetic declared{.qk = Accumulate::kBlockHopper, .p_format = Format::kBf16, .p_known = true, .splits = 1};
  EXPECT_EQ(kernels[0].arithmetic, declared);
  EXPECT_EQ(kernels[1].arithmetic, Arithmetic{}) << "what is left out is unknown";
  EXPECT_FALSE(kernels[1].identity.device);
}

TEST(Manifest, ErrorsNameFileFieldAndValue) {
  const std::string kernel = R"({"name": "mine", "op": "attention", "formats": ["bf16"]})";
  const std::pair<std::string, std::string> wrong[] = {
      {"", "my.so: manifest: is not JSON"},
      {"{\"kernels\": [}", "my.so: manifest: is not JSON"},
      {"[]", "manifest: expected an object, got array"},
      {"{}", "my.so: manifest.kernels: missing"},
      {R"({"kernels": [], "kernels": []})", "member 'kernels' stands twice"},
      {R"({"kernels": []})", "manifest.kernels: expected at least one kernel"},
      {R"({"kernels": {}})", "manifest.kernels: expected an array"},
      {R"({"kernel": []})", "manifest.kernel: expected one of the members kernels"},
      {R"({"kernels": [7]})", "manifest.kernels[0]: expected an object, got 7"},
      {R"({"kernels": [{"op": "attention", "formats": ["bf16"]}]})", "manifest.kernels[0].name: missing"},
      {R"({"kernels": [{"name": "mine", "formats": ["bf16"]}]})", "manifest.kernels[0].op: missing"},
      {R"({"kernels": [{"name": "mine", "op": "attention"}]})", "manifest.kernels[0].formats: missing"},
      {R"({"kernels": [{"name": "a b", "op": "attention", "formats": ["bf16"]}]})",
       "kernels[0].name: expected 1 to 64 letters"},
      {R"({"kernels": [{"name": "", "op": "attention", "formats": ["bf16"]}]})",
       "kernels[0].name: expected 1 to 64 letters"},
      {R"({"kernels": [{"name": "correct", "op": "attention", "formats": ["bf16"]}]})",
       "means no group of kernels, got \"correct\""},
      {"{\"kernels\": [" + kernel + ", " + kernel + "]}", "manifest.kernels[1].name: expected another name"},
      {R"({"kernels": [{"name": "mine", "op": "gemm", "formats": ["bf16"]}]})",
       "op: expected one of attention, merge, softmax, got \"gemm\""},
      {R"({"kernels": [{"name": "mine", "op": "attention", "formats": []}]})", "formats: expected at least one format"},
      {R"({"kernels": [{"name": "mine", "op": "attention", "formats": ["bf17"]}]})", "formats[0]: expected a format"},
      {R"({"kernels": [{"name": "mine", "op": "attention", "formats": ["fp64"]}]})",
       "formats[0]: expected a format that attention has"},
      {R"({"kernels": [{"name": "mine", "op": "softmax", "formats": ["e4m3"]}]})",
       "formats[0]: expected a format that softmax has"},
      {R"({"kernels": [{"name": "mine", "op": "attention", "formats": ["bf16", "bf16"]}]})",
       "formats[1]: expected every format once"},
      {kernel_with(R"("formatz": [])"), "kernels[0].formatz: expected one of the members"},
      {kernel_with(R"("device": "tpu")"), "device: expected cpu or cuda, got \"tpu\""},
      {kernel_with(R"("alignment": 24)"), "alignment: expected a power of two from 1 to 64, got 24"},
      {kernel_with(R"("alignment": 4096)"), "alignment: expected a power of two"},
      {kernel_with(R"("limits": {"dim": "any"})"), "limits.dim: expected a parameter of attention instead of 'dim'"},
      {kernel_with(R"("limits": {"mask": "any"})"), "'mask' is a named option: see conventions"},
      {kernel_with(R"("limits": {"dtype": "any"})"), "`formats` says it"},
      {kernel_with(R"("limits": {"rows": "any"})"), "every kernel takes it"},
      {kernel_with(R"("limits": {"d": "all"})"), "limits.d: expected \"any\", a list of numbers"},
      {kernel_with(R"("limits": {"d": 64})"), "limits.d: expected \"any\", a list of numbers"},
      {kernel_with(R"("limits": {"d": []})"), "limits.d: expected at least one value"},
      {kernel_with(R"("limits": {"d": ["wide"]})"), "limits.d[0]: expected a number"},
      {kernel_with(R"("limits": {"d": {}})"), "limits.d: expected at least one of min, max and multiple_of"},
      {kernel_with(R"("limits": {"d": {"most": 3}})"),
       "limits.d.most: expected min, max or multiple_of instead of 'most'"},
      {kernel_with(R"("limits": {"d": {"max": "3"}})"), "limits.d.max: expected a number"},
      {kernel_with(R"("limits": {"d": {"min": 128, "max": 64}})"),
       "limits.d.max: expected a number not below min = 128, got 64"},
      {kernel_with(R"("limits": {"d": {"multiple_of": 0}})"), "multiple_of: expected an integer above 0, got 0"},
      {kernel_with(R"("limits": {"d": {"min": 65, "max": 127, "multiple_of": 64}})"),
       "multiple_of: expected a number with a multiple between 65 and 127"},
      {kernel_with(R"("conventions": {"d": "any"})"), "'d' is a number: see limits"},
      {kernel_with(R"("conventions": {"mask": "none"})"),
       "conventions.mask: expected \"any\" or a list of names, got \"none\""},
      {kernel_with(R"("conventions": {"mask": []})"), "conventions.mask: expected at least one name"},
      {kernel_with(R"("conventions": {"mask": ["none", "casual"]})"),
       "conventions.mask[1]: expected one of none, causal, bool"},
      {kernel_with(R"("conventions": {"colour": "any"})"), "a parameter of attention instead of 'colour'"},
      {kernel_with(R"("arithmetic": {"kq": "fp32"})"), "arithmetic.kq: expected one of the fields"},
      {kernel_with(R"("arithmetic": {"qk": "fp8"})"), "arithmetic.qk: expected one of fp32, block_ampere"},
      {kernel_with(R"("arithmetic": {"p_format": "bf17"})"), "arithmetic.p_format: expected a format name or unknown"},
      {kernel_with(R"("arithmetic": {"tile_n": -1})"), "arithmetic.tile_n: expected an integer from 0 on, got -1"},
      {kernel_with(R"("arithmetic": {"tile_n": "64"})"), "arithmetic.tile_n: expected a 64-bit integer"},
      {kernel_with(R"("arithmetic": {"lazy_threshold": 8})"), "arithmetic.lazy_threshold: expected 0 without"},
      {kernel_with(R"("arithmetic": [])"), "arithmetic: expected an object"},
  };
  for (const auto& [text, words] : wrong) {
    const std::string error = error_of(text);
    EXPECT_EQ(error.find("my.so: manifest"), 0U) << text << "\n" << error;
    EXPECT_NE(error.find(words), std::string::npos) << text << "\n" << error;
  }
  EXPECT_EQ(error_of(kernel_with("")), "no error");
}

TEST(Manifest, AParameterThatIsNotNamedIsTakenAtItsDefaultOnly) {
  const PluginKernel kernel =
      read_manifest(
          kernel_with(
              R"("limits": {"sq": "any", "hq": [1, 2], "d": {"min": 16, "max": 128, "multiple_of": 16}, "window": {"min": 0}},
                     "conventions": {"mask": ["none", "causal"]})"),
          "my.so")
          .front();
  const auto refuses = [&](std::initializer_list<std::pair<std::string, std::string>> items) {
    return kernel.refuses(params_of(items)).value_or("");
  };
  EXPECT_EQ(refuses({}), "takes window at least 0 only, not window=-1,-1");
  const auto with_window = [&](const std::string& key, const std::string& value) {
    return refuses({{"window", "4,0"}, {key, value}});
  };
  EXPECT_EQ(with_window("sq", "1000"), "");
  EXPECT_EQ(with_window("rows", "1"), "") << "what is judged is not the kernel's business";
  EXPECT_EQ(with_window("rows_seed", "3"), "");
  EXPECT_EQ(with_window("skv", "5"), "takes skv at its default only, not skv=5");
  EXPECT_EQ(with_window("hq", "2"), "");
  EXPECT_EQ(with_window("hq", "3"), "takes hq 1 or 2 only, not hq=3");
  EXPECT_EQ(with_window("d", "48"), "");
  EXPECT_EQ(with_window("d", "72"), "takes d at least 16, at most 128, a multiple of 16 only, not d=72");
  EXPECT_EQ(with_window("d", "8"), "takes d at least 16, at most 128, a multiple of 16 only, not d=8");
  EXPECT_EQ(with_window("d", "256"), "takes d at least 16, at most 128, a multiple of 16 only, not d=256");
  EXPECT_EQ(with_window("mask", "causal"), "");
  EXPECT_EQ(with_window("mask", "bool"), "takes mask none or causal only, not mask=bool");
  EXPECT_EQ(with_window("sink", "in_lse"), "takes sink at its default only, not sink=in_lse");
  EXPECT_EQ(with_window("dtype", "fp16"), "takes bf16 inputs only, not fp16");
}

TEST(Manifest, DefaultsThatDependOnOtherParametersAreHeldToTheLimits) {
  const PluginKernel kernel =
      read_manifest(kernel_with(R"("limits": {"hq": "any", "hkv": {"max": 2}, "d": "any", "dv": [64]})"), "my.so")
          .front();
  EXPECT_EQ(kernel.refuses(params_of({{"hq", "4"}})).value_or(""), "takes hkv at most 2 only, not hkv=4");
  EXPECT_EQ(kernel.refuses(params_of({{"d", "128"}})).value_or(""), "takes dv 64 only, not dv=128");
  EXPECT_EQ(kernel.refuses(params_of({{"hq", "4"}, {"hkv", "1"}, {"d", "128"}, {"dv", "64"}})).value_or(""), "");
}

TEST(OpParameters, CompleteParamsAreTheSameCaseWithEveryDefaultWritten) {
  const std::pair<const char*, Params> cases[] = {
      {"attention", params_of({{"d", "80"}, {"hq", "6"}, {"hkv", "2"}, {"sq", "3"}})},
      {"attention", params_of({{"b", "2"}, {"sq", "9"}, {"batch", "packed"}, {"q_lens", "9,4"}, {"window", "3,-1"}})},
      {"attention", params_of({{"dtype", "e4m3"}, {"kv", "vllm"}, {"skv", "40"}})},
      {"softmax", params_of({{"dtype", "fp16"}, {"n", "100"}, {"lse", "2"}})},
      {"merge", params_of({{"out", "fp32"}, {"parts", "5"}})}};
  for (const auto& [op, params] : cases) {
    const Params all = op_parameters(op).complete(params);
    EXPECT_EQ(op_parameters(op).complete(op_named(op).canonical(params)), all);
    for (const auto& [key, value] : params.items) EXPECT_EQ(*all.find(key), value) << key;
    for (const ParamInfo& info : op_named(op).params) {
      if (info.key != "q_lens" && info.key != "kv_lens" && info.key != "block") {
        EXPECT_NE(all.find(info.key), nullptr) << op << " " << info.key;
      }
    }
    for (const ParamNames& named : op_parameters(op).named)
      EXPECT_NE(std::find(named.names.begin(), named.names.end(), *all.find(named.key)), named.names.end())
          << op << " " << named.key;
  }
}

}  // namespace
}  // namespace assay
