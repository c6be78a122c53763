// The fuzz program from outside, with its plain main: options, statistics, findings kept or fatal, plug-ins in their workers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace assay {
namespace {

class FuzzEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("assay_fuzz_engine_test_{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static Outcome engine(const std::string& arguments) { return shell(std::string(ASSAY_FUZZ_REPLAY) + " " + arguments); }
  static std::string faulty() { return fmt::format("--plugin={}/faulty_attention_plugin.so", ASSAY_PLUGINS); }
  std::filesystem::path folder_;
};

TEST_F(FuzzEngine, NamesWhatItDoesNotKnow) {
  for (const auto& [arguments, words] : {std::pair{"", "usage: assay_fuzz TARGET"},
                                         std::pair{"no_such_target", "usage: assay_fuzz TARGET"},
                                         std::pair{"attention --kernel=no_such_kernel", "no_such_kernel"},
                                         std::pair{"attention --kernel=softmax_online_bf16", "of op attention"},
                                         std::pair{"attention --nonsense", "--nonsense"},
                                         std::pair{"attention --kernel=", "--kernel="},
                                         std::pair{"attention --plugin=/no/such.so", "/no/such.so"}}) {
    const Outcome run = engine(arguments);
    EXPECT_EQ(run.exit, 2) << arguments;
    EXPECT_NE(run.text.find(words), std::string::npos) << arguments << "\n" << run.text;
  }
}

TEST_F(FuzzEngine, ListsEveryOpAndReaderAmongItsTargets) {
  const std::string usage = engine("").text;
  for (const char* target :
       {"attention", "softmax", "merge", "tier_arb", "case_parser", "safetensors", "manifest", "worker_protocol"})
    EXPECT_NE(usage.find(fmt::format("\n  {} ", target)), std::string::npos) << target;
}

TEST_F(FuzzEngine, CountsWhatItDidByKernel) {
  ASSERT_EQ(engine("attention --kernel=fa2_bf16,naive_bf16 --stats=" + path("stats") + " -runs=60").exit, 0);
  const auto stats = nlohmann::json::parse(std::ifstream(path("stats")));
  EXPECT_EQ(stats.at("op"), "attention");
  EXPECT_EQ(stats.at("kernels").size(), 2U);
  std::int64_t executions = 0, verdicts = 0;
  double largest = 0;
  const std::string known = engine("attention --list-regimes").text;
  for (const auto& [name, kernel] : stats.at("kernels").items()) {
    executions += kernel.at("executions").get<std::int64_t>();
    EXPECT_GT(kernel.at("regimes").size(), 20U) << name;
    for (const auto& regime : kernel.at("regimes"))
      EXPECT_NE(("\n" + known).find("\n" + regime.get<std::string>() + "\n"), std::string::npos) << regime;
    ASSERT_TRUE(kernel.at("worst").contains("T0 o")) << name;
    for (const auto& [where, used] : kernel.at("worst").items()) {
      EXPECT_LE(used.get<double>(), 1) << name << " " << where;
      largest = std::max(largest, used.get<double>());
    }
  }
  EXPECT_GT(largest, 0);
  for (const auto& [name, count] : stats.at("verdicts").items()) verdicts += count.get<std::int64_t>();
  EXPECT_EQ(stats.at("executions"), executions);
  EXPECT_EQ(stats.at("executions"), verdicts);
  EXPECT_EQ(executions + stats.at("rejected_inputs").get<std::int64_t>(), 60);
}

TEST_F(FuzzEngine, AFindingEndsItUnlessFindingsAreKept) {
  const std::string kernel = " --kernel=own_logit_scale";
  const Outcome fatal = engine("attention " + faulty() + kernel + " -runs=200");
  EXPECT_EQ(fatal.exit, 128 + 6) << "aborts, so that libFuzzer keeps the input\n" << fatal.text;
  EXPECT_NE(fatal.text.find("assay repro "), std::string::npos) << fatal.text;
  const Outcome kept = engine("attention " + faulty() + kernel + " -runs=200 --findings=" + path("findings"));
  EXPECT_EQ(kept.exit, 0) << kept.text;
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("findings")))
    folders += std::filesystem::exists(entry.path() / "smallest.case");
  EXPECT_GE(folders, 1);
  EXPECT_EQ(engine("attention " + faulty() + kernel + " -runs=200 --stop --findings=" + path("other")).exit, 1);
}

TEST_F(FuzzEngine, StopsWithOneErrorWhereItCannotWrite) {
  const Outcome run = engine("attention --kernel=naive_bf16 -runs=5 --stats=/proc/no/such/file");
  EXPECT_EQ(run.exit, 3) << run.text;
  EXPECT_NE(run.text.find("/proc/no/such/file"), std::string::npos) << run.text;
}

}  // namespace
}  // namespace assay
