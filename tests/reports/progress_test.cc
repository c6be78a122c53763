// Tests of the progress line: silent without a terminal, cut to the width, cleared at the end.
#include "reports/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace assay {
namespace {

Summary some(std::int64_t cases) {
  Summary s;
  s.cases = cases;
  s.clean = cases;
  return s;
}

TEST(Progress, LineHoldsCountsAndFailuresAndIsCutToTheWidth) {
  Summary s = some(20);
  EXPECT_EQ(progress_line(s, 2000, 12.4, "fa2: attention", 80), "[  20/2000]   12 s  fa2: attention");
  s.findings = 2;
  s.unclassified = 1;
  s.hung = 1;
  EXPECT_EQ(progress_line(s, 2000, 0, "x", 80), "[  20/2000]    0 s, 3 failures, 1 crashed or hung  x");
  EXPECT_EQ(progress_line(s, 2000, 0, std::string(500, 'x'), 40).size(), 40U);
}

TEST(Progress, WritesNothingWithoutATerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(10, file);
    EXPECT_FALSE(progress.visible());
    progress.show(some(1), "a");
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

TEST(Progress, RewritesOneLineOnATerminalAndClearsIt) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) GTEST_SKIP() << "no pseudo terminal here";
  std::FILE* terminal = std::fopen(ptsname(master), "w");
  ASSERT_NE(terminal, nullptr);
  {
    const Progress::Clock::time_point start;
    Progress progress(10, terminal, start);
    EXPECT_TRUE(progress.visible());
    progress.show(some(1), "first", start + std::chrono::seconds(3));
    progress.show(some(2), "too soon", start + std::chrono::milliseconds(3099));
    progress.show(some(3), "next", start + std::chrono::milliseconds(3100));
  }
  std::fclose(terminal);
  std::string written;  // the terminal hands bytes over in pieces; it reports an error after the last one
  char buffer[512];
  for (ssize_t length = 0; (length = read(master, buffer, sizeof buffer)) > 0;)
    written.append(buffer, static_cast<std::size_t>(length));
  EXPECT_EQ(written, "\r\x1b[K[ 1/10]    3 s  first\r\x1b[K[ 3/10]    3 s  next\r\x1b[K");
  close(master);
}

}  // namespace
}  // namespace assay
