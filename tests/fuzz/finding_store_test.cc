// The finding store: one entry per cause, whole files whatever kills a process, and a clear word when the disk is full.
#include "fuzz/finding_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "tests/fuzz/failures.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

const std::string kLong = "attention skv=200 d=16", kShort = "attention skv=100 d=16";

class Store : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/assay_store_XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string text(const std::string& folder, const std::string& file) const {
    return read_whole(dir_ + "/" + folder + "/" + file);
  }
  std::vector<StoredFinding> found() const { return FindingStore(dir_).findings(); }
  std::string dir_;
};

TEST_F(Store, KeepsAFindingInAFolderThatRepeatsIt) {
  const auto added = FindingStore(dir_).add(failing(kLong, "dropped_keys", 199, 100));
  EXPECT_EQ(added.stored, Stored::kNew);
  EXPECT_EQ(added.folder, "fa2_bf16--attention-dropped_keys-tail-gross");
  EXPECT_EQ(text(added.folder, "smallest.case"), kLong + "\n");
  EXPECT_EQ(text(added.folder, "worst.case"), kLong + "\n");
  EXPECT_EQ(text(added.folder, "repro.txt"),
            "assay repro '" + kLong + "' --kernel fa2_bf16\nassay repro '" + kLong + "' --kernel fa2_bf16\n");
  const std::string json = text(added.folder, "finding.json");
  for (const char* part : {"\"dropped_keys\"", "\"evidence\"", "\"environment\"", "\"compiler\"", "\"fail_t0\""})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].count, 1);
}

TEST_F(Store, CountsFindingsOfOneSignatureAndKeepsTwoSignaturesAndTwoKernelsApart) {
  {
    FindingStore store(dir_);
    for (int i = 0; i < 5; ++i) store.add(failing(kLong, "dropped_keys", 199, 100));
    store.add(failing(kLong, "value_scale", 199, 100));
    store.add(failing(kLong, "dropped_keys", 199, 100, "fa2_fp16"));
  }
  const std::vector<StoredFinding> all = found();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].count, 5);
  EXPECT_EQ(all[1].signature.mode, "value_scale");
  EXPECT_EQ(all[2].kernel, "fa2_fp16");
}

TEST_F(Store, KeepsTheSmallestAndTheWorstCase) {
  FindingStore store(dir_);
  store.add(failing(kLong, "dropped_keys", 199, 100));
  const auto smaller = store.add(failing(kShort, "dropped_keys", 99, 50));
  EXPECT_EQ(smaller.stored, Stored::kSmaller);
  EXPECT_EQ(text(smaller.folder, "smallest.case"), kShort + "\n");
  EXPECT_EQ(text(smaller.folder, "worst.case"), kLong + "\n");
  EXPECT_EQ(store.add(failing(kLong, "dropped_keys", 199, 400)).stored, Stored::kWorse);
  const std::string longer = "attention sq=2 skv=200 d=16";
  EXPECT_EQ(store.add(failing(longer, "dropped_keys", 199, 500)).stored, Stored::kWorse);
  EXPECT_EQ(store.add(failing(longer, "dropped_keys", 199, 300)).stored, Stored::kKnown);
  store.flush();
  EXPECT_EQ(text(smaller.folder, "smallest.case"), kShort + "\n");
  EXPECT_EQ(text(smaller.folder, "worst.case"), longer + "\n");
  EXPECT_EQ(found()[0].worst_used, 500);
  EXPECT_EQ(found()[0].count, 5);
}

TEST_F(Store, TakesFindingsThatShrinkToOneForOneAndAsksAgainNowAndThen) {
  int shrunk = 0;
  std::string to = "attention skv=65 d=1";
  std::string mode = "dropped_keys";
  const FindingStore::Shrink shrink = [&](const Record&) {
    ++shrunk;
    return failing(to, mode, 64, 30);
  };
  FindingStore store(dir_);
  EXPECT_EQ(store.add(failing(kLong, "dropped_keys", 199, 100), shrink).stored, Stored::kNew);
  EXPECT_EQ(store.add(failing(kLong, "dropped_keys", 10, 100), shrink).stored, Stored::kKnown);
  EXPECT_EQ(shrunk, 2);
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].seen_as,
            (std::vector<std::string>{"attention-dropped_keys-tail-gross", "attention-dropped_keys-part-gross"}));
  EXPECT_EQ(text(found()[0].folder, "smallest.case"), to + "\n");
  for (int i = 0; i < 2; ++i) store.add(failing(kLong, "dropped_keys", 10, 100), shrink);
  EXPECT_EQ(shrunk, 2) << "known";
  mode = "value_scale";  // the fourth shrinks to something else: a second cause behind one signature
  EXPECT_EQ(store.add(failing(kLong, "dropped_keys", 10, 100), shrink).stored, Stored::kNew);
  EXPECT_EQ(shrunk, 3);
  EXPECT_EQ(found().size(), 2U);

  FindingStore other(dir_);  // another process learns from the disk what shrank to what
  EXPECT_EQ(other.add(failing(kLong, "dropped_keys", 10, 100), shrink).stored, Stored::kKnown);
  EXPECT_EQ(shrunk, 3);
}

TEST_F(Store, HoldsWhatSeveralProcessesFindAtOnce) {
  constexpr int kProcesses = 4, kFindings = 30;
  const std::vector<std::string> modes{"dropped_keys", "value_scale", "mask_edge"};
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    int status = 0;
    try {
      FindingStore store(dir_);
      for (int i = 0; i < kFindings; ++i) {
        store.add(failing(kLong, modes[static_cast<std::size_t>(i) % modes.size()], 199, 100 + i));
        if (i % 7 == 0) store.flush();
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    _exit(status);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::vector<StoredFinding> all = found();
  ASSERT_EQ(all.size(), modes.size());
  std::int64_t count = 0;
  for (const StoredFinding& finding : all) {
    count += finding.count;
    EXPECT_GE(finding.worst_used, 127);
  }
  EXPECT_EQ(count, kProcesses * kFindings);
}

TEST_F(Store, SurvivesBeingKilledAnywhere) {
  std::size_t most = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      FindingStore store(dir_);
      for (int i = 0;; ++i) {
        store.add(failing(kLong, "mode_" + std::to_string(100 * round + i % 100), 199, 100 + i));
        store.flush();
      }
    }
    const auto entries = [&] {
      return std::count_if(fs::directory_iterator(dir_), fs::directory_iterator(), [](const fs::directory_entry& item) {
        return !item.path().filename().string().starts_with(kUnfinished) && fs::exists(item.path() / "finding.json");
      });
    };
    for (const auto before = entries(); entries() == before;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (round == 3) fs::create_directories(dir_ + "/" + std::string(kUnfinished) + "left");
    if (round == 4) fs::remove(dir_ + "/" + found()[0].folder + "/smallest.case");
    const std::vector<StoredFinding> all = found();
    EXPECT_GE(all.size(), most);
    most = all.size();
    for (const auto& item : fs::recursive_directory_iterator(dir_))
      EXPECT_FALSE(item.path().filename().string().starts_with(kUnfinished)) << item.path();
    for (const StoredFinding& finding : all) {
      EXPECT_EQ(text(finding.folder, "smallest.case"), finding.smallest_line + "\n");
      EXPECT_EQ(text(finding.folder, "worst.case"), finding.worst_line + "\n");
      EXPECT_FALSE(text(finding.folder, "repro.txt").empty());
    }
  }
  EXPECT_GE(most, 8U);
}

/// What `work` throws in a process whose files may hold `bytes`.
std::string error_with_files_of(rlim_t bytes, const std::function<void()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string what = "no error";
    try {
      work();
    } catch (const EnvironmentError& error) {
      what = error.what();
    }
    [[maybe_unused]] const auto written = write(ends[1], what.data(), what.size());
    _exit(0);
  }
  close(ends[1]);
  std::string what;
  char buffer[512];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) what.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return what;
}

TEST_F(Store, NamesTheFileWhenNothingMoreCanBeWrittenAndLeavesNothingHalfDone) {
  const std::string what =
      error_with_files_of(500, [&] { FindingStore(dir_).add(failing(kLong, "dropped_keys", 199, 100)); });
  EXPECT_NE(what.find("fa2_bf16--attention-dropped_keys-tail-gross"), std::string::npos) << what;
  EXPECT_NE(what.find("File too large"), std::string::npos) << what;
  EXPECT_TRUE(found().empty());

  const auto added = FindingStore(dir_).add(failing(kLong, "dropped_keys", 199, 100));
  const std::string before = text(added.folder, "finding.json");
  EXPECT_NE(error_with_files_of(500, [&] { FindingStore(dir_).add(failing(kShort, "dropped_keys", 99, 50)); })
                .find("finding.json"),
            std::string::npos);
  EXPECT_EQ(text(added.folder, "finding.json"), before);
  EXPECT_EQ(text(added.folder, "smallest.case"), kLong + "\n");
  EXPECT_EQ(found().size(), 1U);

  EXPECT_THROW(write_durably("/dev/full/file", "text"), EnvironmentError);
  EXPECT_THROW(FindingStore("/proc/none"), EnvironmentError);
}

TEST_F(Store, RefusesAnEntryThatIsNoneAndNamesFileAndField) {
  const auto added = FindingStore(dir_).add(failing(kLong, "dropped_keys", 199, 100));
  std::string json = text(added.folder, "finding.json");
  json.replace(json.find("\"count\": 1"), 10, "\"count\": {}");
  std::ofstream(dir_ + "/" + added.folder + "/finding.json") << json;
  try {
    found();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("finding.json: count"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay
