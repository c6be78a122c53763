// `assay fuzz` from outside: a campaign to its summary, resuming, signals, what it refuses, and the job array.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/fuzz_options.h"
#include "fuzz/duration.h"
#include "fuzz/sha1.h"
#include "oracle/error.h"
#include "tests/cli/shell.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Fuzz : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("assay_fuzz_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// With the fake engine, which has the given trouble.
  static Outcome fuzz(const std::string& arguments, const std::string& trouble = "") {
    return shell("FAKE_ENGINE='" + trouble + "' ASSAY_FUZZ_ENGINE=" ASSAY_FAKE_ENGINE " " ASSAY_PROGRAM " fuzz " +
                 arguments);
  }
  /// Starts it in the background and ends it with a signal as soon as a file is there that the shell pattern names.
  Outcome ended_by(const std::string& signal, const std::string& until, const std::string& arguments,
                   const std::string& engine) const {
    return shell("FAKE_ENGINE= " + engine + " " ASSAY_PROGRAM " fuzz " + arguments +
                 " & p=$!; while kill -0 $p && ! ls " + until + "; do sleep 0.1; done >" + path("ls") +
                 " 2>&1; kill -" + signal + " $p; wait $p");
  }
  Outcome ended_by(const std::string& signal, const std::string& arguments, const std::string& dir) const {
    return ended_by(signal, path(dir) + "/stats/0.json", arguments + " --dir " + path(dir),
                    "ASSAY_FUZZ_ENGINE=" ASSAY_FAKE_ENGINE);
  }
  nlohmann::json summary(const std::string& dir) const {
    std::ifstream file(fs::path(path(dir)) / "summary.json");
    return nlohmann::json::parse(file);
  }
  /// Every finding of a summary as known.
  static std::string ledger_of(const nlohmann::json& document) {
    std::string text;
    for (const auto& finding : document.at("findings")) {
      for (const char* part : {"kernel", "signature"}) text += finding.at(part).get<std::string>() + " ";
      text += "issue=#7 case=" + finding.at("smallest").get<std::string>() + "\n";
    }
    return text;
  }
  static std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  fs::path folder_;
};

TEST_F(Fuzz, EndsWithASummaryInThreeForms) {
  const Outcome run =
      fuzz("fa2_bf16 naive_bf16 --runs 60 --jobs 1 --dir " + path("c") + " --json " + path("copy.json"));
  EXPECT_EQ(run.exit, 0) << run.text;
  EXPECT_NE(run.text.find("PASS: "), std::string::npos) << run.text;
  EXPECT_NE(run.text.find("regimes of attention never reached: never"), std::string::npos) << run.text;
  const nlohmann::json document = summary("c");
  EXPECT_GE(document.at("done").at("executions"), 60);
  EXPECT_TRUE(document.at("done").at("kernels").contains("naive_bf16"));
  EXPECT_NE(document.at("command").get<std::string>().find("fuzz fa2_bf16 naive_bf16 --runs 60"), std::string::npos);
  EXPECT_EQ(text_of(path("copy.json")), text_of(folder_ / "c" / "summary.json"));
  EXPECT_NE(text_of(folder_ / "c" / "summary.md").find("1 never reached: never"), std::string::npos);
}

TEST_F(Fuzz, GoesOnAfterAKillOfTheSupervisor) {
  const std::string dir = path("c");
  EXPECT_EQ(ended_by("KILL", "fa2_bf16 --time 600s --jobs 1", "c").exit, 128 + 9);
  ASSERT_TRUE(fs::exists(folder_ / "c" / "campaign.json"));
  const Outcome fresh = fuzz("fa2_bf16 --dir " + dir);
  EXPECT_EQ(fresh.exit, 2) << fresh.text;
  EXPECT_NE(fresh.text.find("holds a campaign already"), std::string::npos) << fresh.text;
  const Outcome resumed = fuzz("--resume " + dir + " --time 3s");
  EXPECT_EQ(resumed.exit, 0) << resumed.text;
  EXPECT_GE(summary("c").at("seconds"), 3);
}

TEST_F(Fuzz, WritesItsSummaryWhenItIsInterrupted) {
  const Outcome run = ended_by("TERM", "fa2_bf16 --time 600s --jobs 1", "c");
  EXPECT_EQ(run.exit, 0) << run.text;
  EXPECT_LT(summary("c").at("seconds"), 500);
}

TEST_F(Fuzz, EndsWithTheCodeOfWhatHappened) {
  const Outcome crash = fuzz("fa2_bf16 --runs 60 --jobs 1 --dir " + path("crash"), "crash=9 once=" + path("once"));
  EXPECT_EQ(crash.exit, 5) << crash.text;
  EXPECT_NE(crash.text.find("CRASHED: "), std::string::npos) << crash.text;
  EXPECT_NE(crash.text.find("fa2_bf16 crashed: signal 11 (SIGSEGV)"), std::string::npos) << crash.text;
  EXPECT_EQ(fuzz("fa2_bf16 --runs 60 --jobs 1 --dir " + path("found"), "findings=1").exit, 1);
  const Outcome full = fuzz("fa2_bf16 --runs 60 --jobs 1 --dir " + path("full"), "limit=100");
  EXPECT_EQ(full.exit, 3);
  EXPECT_NE(full.text.find("cannot be written: File too large"), std::string::npos) << full.text;
  EXPECT_EQ(fuzz("--resume " + path("full")).exit, 0);
}

TEST_F(Fuzz, IsNotFailedByWhatTheLedgerKnowsButByAnEntryThatPasses) {
  const std::string call = "fa2_bf16 --runs 80 --jobs 1 --dir ";
  ASSERT_EQ(fuzz(call + path("unknown"), "findings=1").exit, 1);
  std::ofstream(path("ledger")) << ledger_of(summary("unknown"));
  // The engine says that these cases fail; the true kernel passes them.
  const Outcome known = fuzz(call + path("known") + " --known " + path("ledger"), "findings=1");
  EXPECT_EQ(known.exit, 1) << known.text;
  EXPECT_NE(known.text.find("known as #7"), std::string::npos) << known.text;
  EXPECT_NE(known.text.find("does not fail any more"), std::string::npos) << known.text;
  const nlohmann::json document = summary("known");
  for (const auto& finding : document.at("findings")) EXPECT_EQ(finding.at("known"), "#7");
  std::ofstream(path("bad")) << "fa2_bf16 attention-false_max-part-gross case=attention\n";
  EXPECT_EQ(fuzz(call + path("bad_ledger") + " --known " + path("bad")).exit, 2) << "an entry without an issue";
}

TEST_F(Fuzz, RefusesWhatItCannotDo) {
  const auto refused = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome run = fuzz(arguments);
    EXPECT_EQ(run.exit, code) << run.text;
    EXPECT_NE(run.text.find(words), std::string::npos) << run.text;
  };
  refused("fa2_bf16", 2, "--dir: a folder");
  refused("no_such_kernel --dir " + path("c"), 2, "no_such_kernel");
  refused("fa2_bf16 --op softmax --dir " + path("c"), 2, "--op softmax: none of the chosen kernels computes it");
  refused("fa2_bf16 --time 10x --dir " + path("c"), 2, "--time 10x");
  refused("fa2_bf16 --device --dir " + path("c"), 2, "--device: none");
  refused("--resume " + path("c"), 2, "there is no campaign");
  const Outcome missing = shell("ASSAY_FUZZ_ENGINE=/no/such/engine " ASSAY_PROGRAM " fuzz fa2_bf16 --dir " + path("c"));
  EXPECT_EQ(missing.exit, 3);
  EXPECT_NE(missing.text.find("libclang-rt"), std::string::npos) << missing.text;
}

TEST_F(Fuzz, WritesAJobArrayWhoseMembersShareOneFolder) {
  const std::string dir = path("array");
  const Outcome run =
      fuzz("fa2_bf16 --op attention --time 2h --jobs 4 --seed 7 --slurm 3 --sbatch --partition=gpu --no-submit --dir " +
           dir);
  EXPECT_EQ(run.exit, 0) << run.text;
  const std::string script = text_of(folder_ / "array" / "campaign.sbatch");
  for (const std::string& part :
       {std::string("#!/bin/sh\n"), std::string("#SBATCH --array=0-2\n"), std::string("#SBATCH --cpus-per-task=4\n"),
        std::string("#SBATCH --time=160\n"), std::string("#SBATCH --partition=gpu\n"),
        "#SBATCH --output=" + dir + "/members/%a.log\n",
        "fuzz 'fa2_bf16' --op 'attention' --time '7200s' --jobs '4' --deadline '60' --seed '7' --dir '" + dir +
            "' --member \"$SLURM_ARRAY_TASK_ID\"\n"})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\n" << script;
  EXPECT_EQ(shell("sh -n " + dir + "/campaign.sbatch").exit, 0);
  const Outcome none = shell("PATH=/nowhere " ASSAY_PROGRAM " fuzz fa2_bf16 --slurm 2 --dir " + dir);
  EXPECT_EQ(none.exit, 3);
  EXPECT_NE(none.text.find("there is no sbatch here; the script is written: submit " + dir + "/campaign.sbatch"),
            std::string::npos)
      << none.text;
  EXPECT_EQ(fuzz("fa2_bf16 --slurm 2 --member 1 --dir " + dir).exit, 2);
}

TEST_F(Fuzz, SumsUpTheMembersOfAnArrayAndResumesOneByTheSameCommand) {
  const std::string call = "fa2_bf16 --runs 40 --jobs 1 --dir " + path("array") + " --member ";
  for (const char* member : {"0", "1", "0"}) EXPECT_EQ(fuzz(call + member).exit, 0) << member;
  const nlohmann::json document = summary("array");
  EXPECT_EQ(document.at("members"), 2);
  EXPECT_GE(document.at("done").at("executions"), 80);
  EXPECT_TRUE(fs::exists(folder_ / "array" / "corpus" / "attention"));
  EXPECT_FALSE(fs::exists(folder_ / "array" / "members" / "0" / "corpus"));
}

TEST(ReadDuration, TakesSecondsMinutesHoursAndDays) {
  EXPECT_EQ(read_duration("90", "--time"), 90);
  EXPECT_EQ(read_duration("90s", "--time"), 90);
  EXPECT_EQ(read_duration("1.5m", "--time"), 90);
  EXPECT_EQ(read_duration("2h", "--time"), 7200);
  EXPECT_EQ(read_duration("3d", "--time"), 259200);
  for (const char* bad : {"", "m", "0", "-3m", "10x", "1e999"})
    EXPECT_THROW(read_duration(bad, "--time"), InputError) << bad;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  return names;
}

TEST_F(Fuzz, KeepsWhatTheRealEngineFoundThroughAKill) {
  const fs::path engine = fs::path(ASSAY_PROGRAM).parent_path() / "assay_mutants_fuzz";
  if (!fs::exists(engine)) GTEST_SKIP() << "no libFuzzer runtime where this was built: there is no " << engine;
  const fs::path dir = path("c");
  const Outcome killed = ended_by("KILL", dir.string() + "/findings/*/finding.json",
                                  "fa2_bf16_false_max --time 600s --jobs 2 --dir " + dir.string(), "");
  EXPECT_EQ(killed.exit, 128 + 9) << killed.text;
  const std::set<std::string> before = names_in(dir / "findings");
  ASSERT_FALSE(before.empty());
  const Outcome alive =
      shell("sleep 0.5; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null | grep '^" +
            engine.string() + ".*" + dir.string() + "'");
  EXPECT_EQ(alive.text, "") << "an engine outlives its supervisor";
  const Outcome resumed =
      fuzz("--resume " + dir.string() + " --time 1s");  // no time is left: torn files, and the merge
  EXPECT_EQ(resumed.exit, 1) << resumed.text;
  const std::set<std::string> after = names_in(dir / "findings");
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  const nlohmann::json document = summary("c");
  EXPECT_GT(document.at("done").at("executions"), 0);
  EXPECT_GT(document.at("corpus").at("attention"), 0);
  for (const auto& file : fs::directory_iterator(dir / "corpus" / "attention"))
    EXPECT_EQ(file.path().filename().string(), sha1(text_of(file.path())));
  EXPECT_FALSE(document.at("regimes_never_reached").at("attention").empty());
  for (const auto& name : document.at("regimes_never_reached").at("attention"))
    EXPECT_EQ(name.get<std::string>().find("WARNING"), std::string::npos) << name;

  std::ofstream(path("ledger")) << ledger_of(document);
  const Outcome known = fuzz("--resume " + dir.string() + " --time 1s --known " + path("ledger"));
  EXPECT_EQ(known.exit, 0) << known.text;
}

}  // namespace
}  // namespace assay
