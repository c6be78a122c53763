// Campaigns over an engine that crashes, hangs, is killed or meets a full disk at a known place.
#include "fuzz/campaign.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "fuzz/campaign_summary.h"
#include "fuzz/durable_file.h"
#include "fuzz/sha1.h"
#include "oracle/error.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr DeathPolicy kImpatient{.soon = milliseconds(60'000), .first_delay = milliseconds(1), .deaths = 4};

bool wait_for(const std::function<bool()>& event) {
  for (int i = 0; i < 3000 && !event(); ++i) std::this_thread::sleep_for(milliseconds(10));
  return event();
}

class CampaignTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("assay_campaign_test_" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override {
    unsetenv("FAKE_ENGINE");
    fs::remove_all(root_);
  }

  static void trouble(const std::string& words) { setenv("FAKE_ENGINE", words.c_str(), 1); }
  static EngineTools tools() {
    return {.engine = ASSAY_FAKE_ENGINE, .mutant_engine = ASSAY_FAKE_ENGINE, .seeds = [](const std::string&) {
              return std::vector<std::string>{};
            }};
  }
  fs::path dir(const std::string& name = "campaign") const { return root_ / name; }
  CampaignFolders folders(const std::string& name = "campaign") const {
    return {.state = dir(name), .shared = dir(name)};
  }
  static CampaignSpec spec(std::int64_t runs, unsigned jobs = 1) {
    return {.kernels = {{.name = "one", .op = "attention"}, {.name = "two", .op = "attention"}},
            .jobs = jobs,
            .seconds = 0,
            .runs = runs};
  }
  CampaignSummary run(const CampaignSpec& what, const std::string& name = "campaign",
                      const CampaignHooks& hooks = {}) const {
    Campaign(folders(name), tools(), what).run(hooks, kImpatient);
    return campaign_summary(dir(name));
  }
  CampaignSummary resume(const std::string& name = "campaign") const {
    Campaign(folders(name), tools(), {}).run({}, kImpatient);
    return campaign_summary(dir(name));
  }
  /// The lines in the corpus.
  std::set<std::string> corpus(const std::string& name = "campaign") const {
    std::set<std::string> lines;
    for (const auto& file : fs::directory_iterator(folders(name).corpus("attention")))
      lines.insert(read_whole(file.path().string()));
    return lines;
  }
  static std::string last_words(const std::function<void()>& act) {
    try {
      act();
    } catch (const EnvironmentError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  fs::path root_;
};

TEST_F(CampaignTest, RunsEnginesOverAllKernelsAndMergesTheCorpus) {
  const CampaignSummary summary = run(spec(160, 2));
  EXPECT_GE(summary.done.executions, 160);
  EXPECT_EQ(summary.done.verdict("clean"), summary.done.executions);
  EXPECT_EQ(summary.done.kernels.size(), 2U);
  EXPECT_EQ(summary.done.kernels.at("one").worst.at("T0 o"), 0.25);
  EXPECT_EQ(corpus().size(), 21U) << "of 40 inputs every second one is enough";
  EXPECT_EQ(summary.corpus.at("attention"), 21);
  EXPECT_EQ(summary.reached.at("attention"), (std::vector<std::string>{"long", "short"}));
  EXPECT_EQ(summary.never_reached.at("attention"), (std::vector<std::string>{"never"}));
  EXPECT_EQ(exit_code(summary), 0);
}

TEST_F(CampaignTest, KilledInTheMiddleGoesOnAsIfNothingHadHappened) {
  trouble("findings=1");
  const CampaignSummary whole = run(spec(80), "whole");
  const std::string pids = (root_ / "pids").string(), torn_line = "attention sq=12";
  trouble("findings=1 torn=12 pid=" + pids);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    Campaign(folders(), tools(), spec(80)).run({}, kImpatient);
    _exit(0);
  }
  const fs::path torn = folders().corpus("attention") / sha1(torn_line);
  ASSERT_TRUE(wait_for([&] { return fs::exists(torn); }));
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  std::ifstream file(pids);
  pid_t engine = 0;
  file >> engine;
  ASSERT_GT(engine, 0);
  EXPECT_TRUE(wait_for([&] { return kill(engine, 0) != 0; })) << "an engine outlives its supervisor";
  ASSERT_TRUE(fs::exists(torn));
  EXPECT_LT(fs::file_size(torn), torn_line.size());

  trouble("findings=1");
  const CampaignSummary resumed = resume();
  EXPECT_EQ(resumed.torn, 1);
  EXPECT_EQ(corpus(), corpus("whole"));
  EXPECT_GE(resumed.done.executions, 80);
  ASSERT_EQ(resumed.findings.size(), whole.findings.size());
  ASSERT_GT(whole.findings.size(), 0U);
  for (std::size_t i = 0; i < whole.findings.size(); ++i) {
    EXPECT_EQ(resumed.findings[i].signature, whole.findings[i].signature);
    EXPECT_EQ(resumed.findings[i].smallest, whole.findings[i].smallest);
  }
  EXPECT_EQ(exit_code(resumed), 1);
}

TEST_F(CampaignTest, CountsAnEngineThatWasKilledWithItsSupervisorOnce) {
  run(spec(40));
  CampaignState state = load_campaign(dir() / "campaign.json");
  const std::int64_t before = state.done.executions;
  state.open[77] = "attention 1/1";
  save(state, dir() / "campaign.json");
  std::ofstream(folders().stats(77)) << R"({"executions":5,"seconds":1,"verdicts":{"clean":5},"kernels":{}})";
  std::ofstream(folders().stats(78)) << R"({"executions":9,"seconds":1,"verdicts":{"clean":9},"kernels":{}})";
  EXPECT_EQ(Campaign(folders(), tools(), {}).state().done.executions, before + 5) << "78 was counted before";
  EXPECT_EQ(Campaign(folders(), tools(), {}).state().done.executions, before + 5);
}

TEST_F(CampaignTest, QuarantinesACrashWithTheKernelAndItsSignalAndGoesOn) {
  trouble("crash=9 once=" + (root_ / "crashed").string());
  const CampaignSummary summary = run(spec(80));
  ASSERT_EQ(summary.quarantine.size(), 1U);
  const QuarantineEntry& entry = summary.quarantine[0];
  EXPECT_EQ(entry.name, "crash-" + sha1("attention sq=9"));
  EXPECT_EQ(entry.kind, "crashed");
  EXPECT_EQ(entry.how, "signal 11 (SIGSEGV)");
  EXPECT_EQ(entry.kernels, (std::vector<std::string>{"one"}));
  EXPECT_EQ(read_whole((dir() / "quarantine" / entry.name).string()), "attention sq=9");
  const std::string text = read_whole((dir() / "quarantine" / (entry.name + ".txt")).string());
  EXPECT_NE(text.find("deadly signal"), std::string::npos) << text;
  EXPECT_GE(summary.done.executions, 80);
  EXPECT_EQ(summary.restarts, 1);
  EXPECT_EQ(exit_code(summary), 5);
}

TEST_F(CampaignTest, RecordsAnInputThatCrashesAgainAndAgainOnceAndGivesItsKernelsUp) {
  trouble("crash=9");
  std::vector<std::string> said;
  const CampaignSummary summary =
      run(spec(100000), "campaign", {.say = [&](const std::string& text) { said.push_back(text); }});
  ASSERT_EQ(summary.quarantine.size(), 1U);
  EXPECT_EQ(summary.quarantine[0].times, 4);
  ASSERT_EQ(summary.given_up.size(), 1U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("attention 1/1 (one, two) is given up: its engine ended 4 times in a row"), std::string::npos)
      << said[0];
  EXPECT_EQ(exit_code(summary), 5);
}

TEST_F(CampaignTest, CallsAnExecutionThatTakesTooLongHung) {
  trouble("hang=9 once=" + (root_ / "hung").string());
  const CampaignSummary summary = run(spec(60));
  ASSERT_EQ(summary.quarantine.size(), 1U);
  EXPECT_EQ(summary.quarantine[0].kind, "hung");
  EXPECT_EQ(summary.quarantine[0].kernels.size(), 2U);
  EXPECT_EQ(exit_code(summary), 5);
}

TEST_F(CampaignTest, RecordsADeathThatLeavesNoInput) {
  trouble("at=9 exit=9 once=" + (root_ / "ended").string());
  const CampaignSummary summary = run(spec(60));
  ASSERT_EQ(summary.quarantine.size(), 1U);
  EXPECT_FALSE(summary.quarantine[0].has_input);
  EXPECT_EQ(summary.quarantine[0].how, "exit 9");
  EXPECT_EQ(exit_code(summary), 5);
}

TEST_F(CampaignTest, BlamesNoKernelForAKillFromOutside) {
  trouble("at=9 signal=9 once=" + (root_ / "killed").string());
  const CampaignSummary summary = run(spec(60));
  EXPECT_TRUE(summary.quarantine.empty());
  EXPECT_EQ(summary.restarts, 1);
  EXPECT_EQ(exit_code(summary), 0);
  trouble("at=9 signal=9");
  const std::string words = last_words([&] { run(spec(100000), "again"); });
  EXPECT_NE(words.find("last: signal 9 (SIGKILL): some last words"), std::string::npos) << words;
}

TEST_F(CampaignTest, StopsWithTheEnginesOwnWordsWhereItsEnvironmentFails) {
  trouble("at=9 exit=3");
  EXPECT_EQ(last_words([&] { run(spec(60)); }), "the engine of attention 1/1 stopped: some last words");
  EngineTools missing = tools();
  missing.engine = "/no/such/engine";
  const std::string words = last_words([&] { Campaign(folders("other"), missing, spec(60)); });
  EXPECT_NE(words.find("cannot start /no/such/engine: No such file"), std::string::npos) << words;
}

TEST_F(CampaignTest, IsRefusedWhileAnotherProcessRunsIt) {
  const Campaign first(folders(), tools(), spec(60));
  const std::string words = last_words([&] { Campaign(folders(), tools(), {}); });
  EXPECT_NE(words.find("process " + std::to_string(getpid()) + " runs this campaign already"), std::string::npos)
      << words;
  EXPECT_THROW(Campaign(folders(), tools(), spec(60)), InputError) << "a fresh one where there is one";
  EXPECT_THROW(Campaign(folders("none"), tools(), {}), InputError) << "nothing to go on with";
}

TEST_F(CampaignTest, NamesTheFileWhereAnEnginesDiskIsFullAndCanBeResumed) {
  trouble("limit=100");
  const std::string words = last_words([&] { run(spec(80)); });
  EXPECT_NE(words.find("stats/0.json: cannot be written: File too large"), std::string::npos) << words;
  trouble("");
  EXPECT_GE(resume().done.executions, 80);
  EXPECT_EQ(corpus().size(), 21U);
}

TEST_F(CampaignTest, NamesTheFileWhereItsOwnDiskIsFullAndCanBeResumed) {
  trouble("delay=5");
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    const auto fill = [](const CampaignView&) {
      const rlimit limit{200, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &limit);
    };
    const std::string words = last_words([&] { run(spec(100000), "campaign", {.show = fill}); });
    _exit(words == (dir() / "campaign.json").string() + ": cannot be written: File too large" ? 0 : 1);
  }
  int status = 0;
  waitpid(supervisor, &status, 0);
  EXPECT_EQ(status, 0);
  CampaignState state = load_campaign(dir() / "campaign.json");
  Campaign again(folders(), tools(), {});
  again.set_limits({}, state.done.executions + 60);
  again.run({}, kImpatient);
  EXPECT_GE(again.state().done.executions, state.done.executions + 60);
}

TEST_F(CampaignTest, EndsInGoodOrderWhenItIsAskedTo) {
  trouble("pid=" + (root_ / "pids").string());
  std::atomic<bool> stop{false};
  const CampaignSummary summary =
      run(spec(10'000'000, 2), "campaign",
          {.stop = &stop, .show = [&](const CampaignView& view) { stop = view.seconds > 0; }});
  EXPECT_GT(summary.done.executions, 0);
  EXPECT_TRUE(load_campaign(dir() / "campaign.json").open.empty());
  std::ifstream pids(root_ / "pids");
  for (pid_t pid = 0; pids >> pid;) EXPECT_NE(kill(pid, 0), 0) << pid;
}

TEST_F(CampaignTest, EndsWhenItsTimeIsSpent) {
  CampaignSpec timed = spec(0);
  timed.seconds = 2;
  const CampaignSummary summary = run(timed);
  EXPECT_GE(summary.seconds, 2);
  EXPECT_EQ(resume().done.executions, summary.done.executions) << "no time is left";
}

TEST_F(CampaignTest, GivesEveryEngineOfDeviceKernelsOneOfTheDevicesInTurn) {
  const std::string args = (root_ / "args").string();
  trouble("args=" + args);
  unsetenv("CUDA_VISIBLE_DEVICES");
  CampaignSpec three = spec(90, 3);
  three.devices = 2;
  three.kernels = {{.name = "a", .op = "attention", .device = true},
                   {.name = "b", .op = "attention", .device = true},
                   {.name = "c", .op = "attention"}};
  run(three);
  std::vector<std::string> devices;  // in the order of the starts
  std::istringstream lines(read_whole(args));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("--stats=") == std::string::npos) continue;
    const std::string device = line.substr(line.rfind('=') + 1);
    if (line.find("--kernel=c") != std::string::npos)
      EXPECT_EQ(device, "");
    else
      devices.push_back(device);
  }
  ASSERT_GE(devices.size(), 2U);
  EXPECT_EQ(std::set(devices.begin(), devices.begin() + 2), (std::set<std::string>{"0", "1"}));
  setenv("CUDA_VISIBLE_DEVICES", "5,7", 1);
  EXPECT_EQ(visible_devices(8), (std::vector<std::string>{"5", "7"}));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(CampaignTest, GivesKernelsThatAreMoreThanEnginesTheirTurns) {
  CampaignSpec two = spec(90);
  two.kernels = {{.name = "a", .op = "attention"}, {.name = "b", .op = "softmax"}, {.name = "c", .op = "merge"}};
  const CampaignSummary summary = run(two);
  for (const char* kernel : {"a", "b", "c"}) EXPECT_GT(summary.done.kernels.at(kernel).executions, 10) << kernel;
}

}  // namespace
}  // namespace assay
