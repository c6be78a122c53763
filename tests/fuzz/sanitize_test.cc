// A memory checker's findings come back to the run that caused them, however late the checker writes.
#include "fuzz/sanitize.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

enum class Speaks { kAtOnce, kAfterTheNextRun, kAtTheEnd };

/// A process whose guilty runs make the checker write, sooner or later.
struct Simulated {
  std::set<std::size_t> guilty;
  Speaks speaks = Speaks::kAtOnce;
  std::set<std::size_t> fatal = {};  ///< runs that end their process
  bool only_together = false;        ///< guilty runs are silent if they are alone in their process

  std::string written = {}, pending = {};
  std::size_t runs_of_process = 0, runs = 0, processes = 0;

  std::vector<std::vector<SanitizerFinding>> search(std::size_t count) {
    Watched watched;
    watched.run = [this](std::size_t i) {
      ++runs;
      if (runs_of_process++ == 0) ++processes;
      written += pending;
      pending.clear();
      if (guilty.contains(i) && !(only_together && runs_of_process == 1))
        pending = "========= Invalid write\n=========     at f+0x" + std::to_string(i) + "\n=========\n";
      if (speaks == Speaks::kAtOnce) written += std::exchange(pending, "");
      return !fatal.contains(i);
    };
    watched.has_spoken = [this] { return speaks != Speaks::kAtTheEnd && !written.empty(); };
    watched.close = [this] {
      runs_of_process = 0;
      return std::exchange(written, "") + std::exchange(pending, "");
    };
    return findings_by_run(count, watched);
  }
};

std::set<std::size_t> blamed(const std::vector<std::vector<SanitizerFinding>>& found) {
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) continue;
    all.insert(i);
    EXPECT_NE(found[i].front().text.find("f+0x" + std::to_string(i)), std::string::npos) << found[i].front().text;
  }
  return all;
}

TEST(Sanitize, ASilentCheckerNeedsOneProcess) {
  Simulated process{{}};
  EXPECT_EQ(blamed(process.search(50)), std::set<std::size_t>{});
  EXPECT_EQ(process.processes, 1U);
  EXPECT_EQ(process.runs, 50U);
  EXPECT_TRUE(Simulated{{}}.search(0).empty());
}

TEST(Sanitize, FindingsComeBackToTheirRunsHoweverLateTheyAreWritten) {
  for (const Speaks speaks : {Speaks::kAtOnce, Speaks::kAfterTheNextRun, Speaks::kAtTheEnd})
    for (const std::set<std::size_t>& guilty :
         {std::set<std::size_t>{0}, std::set<std::size_t>{7}, std::set<std::size_t>{19},
          std::set<std::size_t>{3, 4, 11}, std::set<std::size_t>{0, 1, 2, 3}}) {
      Simulated process{guilty, speaks};
      EXPECT_EQ(blamed(process.search(20)), guilty) << static_cast<int>(speaks);
      EXPECT_LE(process.processes, 2 + 10 * guilty.size());
    }
}

TEST(Sanitize, ARunThatEndsTheProcessIsAskedForItsFindings) {
  Simulated process{{5}, Speaks::kAtTheEnd, {5, 9}};
  EXPECT_EQ(blamed(process.search(20)), std::set<std::size_t>{5});
}

TEST(Sanitize, AFindingThatComesBackNowhereIsNotLost) {
  Simulated process{{4}, Speaks::kAtOnce};
  process.only_together = true;
  const auto found = process.search(5);
  ASSERT_EQ(found[4].size(), 1U);
  EXPECT_NE(found[4].front().text.find("(in a process of 5 runs; not seen again with fewer)"), std::string::npos)
      << found[4].front().text;
}

}  // namespace
}  // namespace assay
