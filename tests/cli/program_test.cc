// The program from outside: exit codes, error lines, the same verdict from check and judge, and repro that repeats itself.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fuzz/suites.h"
#include "tests/cli/shell.h"

namespace assay {
namespace {

nlohmann::json verdict_of(const Outcome& run) { return nlohmann::json::parse(run.text).at("records").at(0).at("verdict"); }

class Program : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = std::filesystem::temp_directory_path() / fmt::format("assay_program_test_{}", getpid()); std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(Program, ExitCodesSayWhatHappened) {
  EXPECT_EQ(assay("check fa2_bf16 --case 'attention sq=4 skv=70'").exit, 0);
  EXPECT_EQ(assay("check fa2_bf16_last_key_dropped --case 'attention sq=4 skv=70'").exit, 1);
  EXPECT_EQ(assay("check fa2_bf16 --case 'attention sq=four'").exit, 2);
  EXPECT_EQ(assay("check no_such_kernel").exit, 2);
  EXPECT_EQ(assay("check --suite no_such_suite").exit, 2);
  EXPECT_EQ(assay("no_such_verb").exit, 2);
  EXPECT_EQ(assay("check fa2_bf16 --case 'attention sq=2 skv=8 v=constant(0)'").exit, 6) << "vacuous is not a pass";
  EXPECT_EQ(assay("check fa2_bf16 --case 'attention sq=4 dtype=fp16'").exit, 6) << "nothing ran";
  EXPECT_EQ(assay("check fa2_bf16 --case 'attention sq=4' --save /proc/no/such/file").exit, 3);
  EXPECT_EQ(assay("--help").exit, 0);
}

TEST_F(Program, ErrorsNameFieldAndValueInOneLine) {
  for (const auto& [arguments, words] : {std::pair{"check --case 'attention hq=3 hkv=2'", "hkv=2"},
                                         std::pair{"check --case 'attention q=nonsense@1'", "nonsense"},
                                         std::pair{"report /no/such/file", "/no/such/file"},
                                         std::pair{"explain no_such_mode", "no_such_mode"},
                                         std::pair{"check --shard 3/2", "3/2"},
                                         std::pair{"check --case 'attention scale=inf'", "scale=inf"},
                                         std::pair{"check --case 'attention scale=nan'", "scale=nan"},
                                         std::pair{"check --case 'attention b=65536 hq=65536 sq=65536'", "2^32"},
                                         std::pair{"check --case 'attention skv=99999999999999999999'", "skv=99999"}}) {
    const Outcome run = assay(arguments);
    EXPECT_EQ(run.exit, 2) << arguments;
    EXPECT_NE(run.text.find(words), std::string::npos) << run.text;
    EXPECT_EQ(std::count(run.text.begin(), run.text.end(), '\n'), 1) << run.text;
  }
}

TEST_F(Program, ShardsPartitionASuite) {
  std::size_t together = 0;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    const Outcome run = assay(fmt::format("check fa2_bf16 fa2_fp16 naive_fp32 fa3_e4m3 --suite smoke --shard {} --json", shard));
    ASSERT_EQ(run.exit, 0) << run.text;
    together += nlohmann::json::parse(run.text).at("records").size();
  }
  const std::vector<Case> smoke = suite_cases("smoke");
  const auto attention = std::count_if(smoke.begin(), smoke.end(), [](const Case& c) { return c.op == "attention"; });
  EXPECT_EQ(together, static_cast<std::size_t>(attention));
}

TEST_F(Program, ViewsOfASavedDocumentAgreeAndKeepTheExitCode) {
  const std::string kernels = "fa2_bf16 fa2_bf16_last_key_dropped softmax_online_fp32_sum_not_rescaled";
  ASSERT_EQ(assay(fmt::format("check {} --suite smoke --save {}", kernels, path("r.json"))).exit, 1);
  const Outcome json = assay(fmt::format("report {} --json", path("r.json")));
  EXPECT_EQ(json.exit, 1);
  std::ifstream saved(path("r.json"));
  EXPECT_EQ(nlohmann::json::parse(json.text).at("summary"), nlohmann::json::parse(saved).at("summary"));
  EXPECT_EQ(assay(fmt::format("report {} --md", path("r.json"))).text.substr(0, 6), "**FAIL");
  EXPECT_NE(assay(fmt::format("report {} --junit", path("r.json"))).text.find("<testsuites"), std::string::npos);
}

TEST_F(Program, ReproRepeatsItself) {
  const std::string arguments = "repro 'attention hq=2 sq=5 skv=130 mask=causal' --kernel fa2_bf16_accumulator_not_rescaled";
  const Outcome first = assay(arguments), second = assay(arguments);
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.exit, second.exit);
  EXPECT_NE(first.text.find("certified digits"), std::string::npos) << first.text;
}

/// judge on a run's own dump must say what check says of the same bits, for sound and faulty kernels.
TEST_F(Program, JudgeOnADumpSaysWhatCheckSays) {
  const std::string line = "'attention b=2 hq=4 hkv=2 sq=7 skv=90 d=32 mask=causal batch=padded kv_lens=90,33 layout=bshd lse=2'";
  for (const char* kernel : {"fa2_bf16", "split_bf16", "fa2_bf16_last_key_dropped", "fa2_bf16_mask_shifted_by_one"}) {
    const Outcome checked = assay(fmt::format("check {} --case {} --json", kernel, line));
    const Outcome dumped = assay(fmt::format("repro {} --kernel {} --dump {}", line, kernel, path("d.safetensors")));
    ASSERT_EQ(dumped.exit, checked.exit) << dumped.text;
    const Outcome judged = assay(fmt::format("judge {} --json", path("d.safetensors")));
    EXPECT_EQ(judged.exit, checked.exit) << judged.text;
    EXPECT_EQ(verdict_of(judged), verdict_of(checked)) << kernel;
  }
}

/// A dump by NumPy: its own arithmetic, its own files; correct outputs pass, wrong ones do not.
TEST_F(Program, JudgeReadsDumpsOfAnotherProgram) {
  const std::string script = std::string(ASSAY_SOURCE_DIR) + "/tests/cli/numpy_dump.py";
  const std::string python = ASSAY_PYTHON;
  if (python.empty()) GTEST_SKIP() << "no Python here has NumPy";
  for (const char* dtype : {"bf16", "fp16"}) {
    const auto dump = [&](const char* fault) {
      return shell(fmt::format("{} {} {} --dtype {} {}", python, script, path("n.safetensors"), dtype, fault)).exit;
    };
    ASSERT_EQ(dump(""), 0);
    const Outcome clean = assay(fmt::format("judge {} --json", path("n.safetensors")));
    EXPECT_EQ(clean.exit, 0) << clean.text;
    // The same bits through `check`: NumPy's inputs, a kernel of ours; and NumPy's outputs by the arithmetic of that kernel.
    EXPECT_EQ(assay(fmt::format("judge {} --as naive_{}", path("n.safetensors"), dtype)).exit, 0);
    for (const char* fault : {"--fault zero_row", "--fault drop_last"}) {
      ASSERT_EQ(dump(fault), 0);
      EXPECT_EQ(assay(fmt::format("judge {}", path("n.safetensors"))).exit, 1) << fault;
    }
  }
}

/// Outputs of a production kernel: cuDNN on an H200 flushes subnormal V. By an arithmetic that keeps subnormals it is found and
/// named; where flushing is legal it is no failure.
TEST_F(Program, APublishedDumpKeepsItsFinding) {
  const std::string dump = std::string(ASSAY_SOURCE_DIR) + "/reports/published/2026-11-29-h200/cudnn_bf16_subnormal_v.safetensors";
  const Outcome found = assay("judge " + dump + " --as fa2_bf16 --json");
  EXPECT_EQ(found.exit, 1);
  EXPECT_EQ(verdict_of(found).at("mode"), "subnormal_flush");
  EXPECT_NE(assay("judge " + dump).exit, 1);
}

TEST_F(Program, HostileDumpsGetOneLineAndExitCodeTwo) {
  std::ofstream(path("short"), std::ios::binary) << "\x10";
  std::ofstream(path("huge"), std::ios::binary) << "\xff\xff\xff\xff\xff\xff\xff\x7f{}";
  std::ofstream(path("empty"), std::ios::binary) << std::string("\x02\0\0\0\0\0\0\0{}", 10);
  for (const char* name : {"short", "huge", "empty", "missing"}) {
    const Outcome run = assay("judge " + path(name));
    EXPECT_EQ(run.exit, 2) << run.text;
    EXPECT_NE(run.text.find(path(name)), std::string::npos) << run.text;
    EXPECT_EQ(std::count(run.text.begin(), run.text.end(), '\n'), 1) << run.text;
  }
}

TEST_F(Program, BenchMutantsCountsWhatEachRuleRejects) {
  const std::string line = "'attention sq=8 skv=512 q=normal@1 k=normal@2 v=normal@3'";
  const Outcome run = assay("bench mutants " + line + " --kernel fa2_bf16 --kernel fa2_bf16_p_truncated --level t1 --json");
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json kernels = nlohmann::json::parse(run.text).at("kernels");
  ASSERT_EQ(kernels.size(), 2U);
  for (const nlohmann::json& kernel : kernels) {
    const nlohmann::json& o = kernel.at("outputs").at(0);
    EXPECT_EQ(o.at("judged"), 512);
    EXPECT_EQ(o.at("allclose_outside").at("0.01"), 0);
    ASSERT_EQ(o.at("levels").size(), 2U);
    EXPECT_EQ(o.at("levels")[0].at("rejected"), 0);
    EXPECT_EQ(o.at("levels")[1].at("rejected").get<int>() > 0, kernel.at("kernel") == "fa2_bf16_p_truncated");
  }
  EXPECT_EQ(assay("bench mutants " + line + " --kernel no_such_kernel").exit, 2);
  EXPECT_EQ(assay("bench mutants 'attention sq=four'").exit, 2);
}

TEST_F(Program, BenchAttackGoesOnFromASavedRecord) {
  const std::string file = path("attack.json"), kernel = "bench attack --op merge --kernel merge_two_pass_fp32 ";
  ASSERT_EQ(assay(kernel + "--evaluations 12 --save " + file).exit, 0);
  const Outcome run = assay(kernel + "--evaluations 12 --json --start " + file);
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  EXPECT_EQ(document.at("started_from"), file);
  EXPECT_EQ(document.at("rejected_cases"), 0);
  EXPECT_FALSE(document.at("peaks").empty());
}

TEST_F(Program, BenchRadiusHoldsTheProvenRadiusAgainstTheTrueError) {
  const Outcome run = assay("bench radius --suite smoke --cases 4 --kernel fa2_bf16 --json");
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json o = nlohmann::json::parse(run.text).at("outputs").at(0);
  EXPECT_EQ(o.at("role"), "o");
  EXPECT_EQ(o.at("outside"), 0);
  EXPECT_LT(o.at("largest_of_tau").get<double>(), 1e-4);
  EXPECT_GT(o.at("median_of_error").get<double>(), 1);  // a radius below the true error would be no radius
  EXPECT_LT(o.at("median_of_error").get<double>(), 1000);
  EXPECT_EQ(assay("bench radius --kernel no_such_kernel").exit, 2);
}

TEST_F(Program, DoctorAndListAnswer) {
  const Outcome doctor = assay("doctor --json");
  EXPECT_EQ(doctor.exit, 0) << doctor.text;
  const nlohmann::json report = nlohmann::json::parse(doctor.text);
  for (const auto& check : report.at("checks")) EXPECT_TRUE(check.at("ok").get<bool>()) << check;
  const nlohmann::json list = nlohmann::json::parse(assay("list --json").text);
  for (const char* what : {"ops", "kernels", "modes", "suites", "recipes"}) EXPECT_FALSE(list.at(what).empty()) << what;
  EXPECT_NE(assay("explain M07").text.find("false_max"), std::string::npos);
}

}  // namespace
}  // namespace assay
