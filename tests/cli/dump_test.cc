// A run dumped by `assay repro --dump` and judged by `assay judge` keeps its verdict, element by element.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace {

using nlohmann::json;

/// Standard output of `assay ARGUMENTS`, parsed.
json json_of(const std::string& arguments) {
  std::string text;
  std::FILE* pipe = popen((std::string(ASSAY_PROGRAM) + " " + arguments).c_str(), "r");
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return json::parse(text).at("records").at(0);
}

struct Dumped : testing::TestWithParam<std::pair<const char*, const char*>> {
  std::filesystem::path file = std::filesystem::temp_directory_path() / ("assay_dump_test_" + std::to_string(getpid()));
  ~Dumped() override { std::filesystem::remove(file); }
};

TEST_P(Dumped, KeepsItsVerdictAndItsWorstElement) {
  const auto& [kernel, line] = GetParam();
  const std::string run = std::string("repro '") + line + "' --kernel " + kernel;
  const json ran = json_of(run + " --json --dump " + file.string());
  const json judged = json_of("judge --json " + file.string());
  EXPECT_EQ(judged.at("verdict"), ran.at("verdict"));
  EXPECT_EQ(judged.at("declared"), ran.at("declared"));
  EXPECT_EQ(judged.at("measurement").at("outputs").size(), ran.at("measurement").at("outputs").size());
  for (std::size_t i = 0; i < ran.at("measurement").at("outputs").size(); ++i) {
    const json &a = ran.at("measurement").at("outputs").at(i), &b = judged.at("measurement").at("outputs").at(i);
    EXPECT_EQ(a.at("worst").at("code"), b.at("worst").at("code"));
    EXPECT_EQ(a.at("worst").at("used"), b.at("worst").at("used"));
    EXPECT_EQ(a.at("rejected"), b.at("rejected"));
    EXPECT_EQ(a.at("bit_equal"), b.at("bit_equal"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Dumped,
    testing::Values(
        std::pair("fa2_bf16", "attention hq=2 sq=9 skv=40 d=32 mask=causal lse=2"),
        std::pair("fa2_bf16_last_key_dropped", "attention hq=2 sq=9 skv=40 d=32"),
        std::pair("fa2_bf16_nan_empty_extent", "attention sq=3 skv=2 d=16 mask=causal"),
        std::pair("split_fp16", "attention b=2 hq=4 hkv=2 sq=9 skv=70 dv=32 batch=padded q_lens=9,4 kv_lens=70,65 dtype=fp16 "
                                "layout=bshd pad_rows=3 pad_dim=8 mask=causal+bool mask.data=keep(0.5)@5 "
                                "set=k[0,0,0,1]:100"),
        std::pair("fa2_bf16", "attention b=3 hq=2 sq=20 skv=90 batch=packed q_lens=20,0,7 kv_lens=90,3,0 mask=causal+additive "
                              "lse=none rows=6 pad_rows=2 mask.data=bias(2)@9")));

TEST(Published, FindingsInOtherLibrariesKeepTheirMode) {
  const std::string published = std::string(ASSAY_SOURCE_DIR) + "/reports/published/";
  for (const auto& [dump, mode] : {std::pair("2026-11-30-h200/flash_scale_not_positive.safetensors", "nan_empty_extent"),
                                   std::pair("2026-11-30-h200/cudnn_scale_not_positive.safetensors", "nan_empty_extent"),
                                   std::pair("2026-11-30-h200/cudnn_masked_row.safetensors", "mask_edge"),
                                   std::pair("2026-11-29-h200/cudnn_bf16_subnormal_v.safetensors --as fa2_bf16", "subnormal_flush")}) {
    const json judged = json_of("judge --json " + published + dump);
    EXPECT_EQ(judged.at("verdict").at("kind"), "finding") << dump;
    EXPECT_EQ(judged.at("verdict").at("mode"), mode) << dump;
  }
}

}  // namespace
