// Tests of the terminal report: nothing is hidden, columns line up, each failure has its line to reproduce.
#include "reports/console.h"

#include <gtest/gtest.h>

#include <sstream>

#include "reports/view.h"
#include "tests/reports/example.h"

namespace assay {
namespace {

TEST(Console, StartsWithTheVerdict) {
  EXPECT_EQ(console_report(one_of_each()).find(verdict_line(one_of_each()) + "\n"), 0U);
}

TEST(Console, ShowsEveryReasonWithItsCount) {
  std::vector<Record> records = one_of_each();
  records.push_back(example_record(CaseVerdict::kSkipped));
  const std::string text = console_report(records);
  EXPECT_NE(text.find("    2 skipped: head dim 16 < 32 is \"too small\"\n"), std::string::npos) << text;
  for (const char* verdict : {"vacuous", "out_of_range", "uncertain"})
    EXPECT_NE(text.find(std::string("    1 ") + verdict + ": head dim"), std::string::npos) << verdict << "\n" << text;
}

TEST(Console, GivesModeEvidenceElementAndReproLineOfAFinding) {
  const Record record = example_record(CaseVerdict::kFinding);
  const std::string text = console_report({record});
  EXPECT_NE(text.find("finding in fa2_bf16: zero_rows, 1 case\n"), std::string::npos) << text;
  EXPECT_NE(text.find("zero_rows: 3 of 6 rows are exactly 0 & the truth is not (this input cannot tell it from "
                      "other_zero_rows)\n"), std::string::npos) << text;
  EXPECT_NE(text.find(describe_worst(record)), std::string::npos) << text;
  EXPECT_NE(text.find(repro_command(record) + "\n"), std::string::npos) << text;
}

TEST(Console, SaysHowManyExamplesItLeftOut) {
  const std::vector<Record> records(7, example_record(CaseVerdict::kFinding));
  const std::string text = console_report(records, 2);
  EXPECT_EQ(count_of(text, "assay repro"), 2U) << text;
  EXPECT_NE(text.find("zero_rows, 7 cases\n"), std::string::npos) << text;
  EXPECT_NE(text.find("and 5 more\n"), std::string::npos) << text;
}

TEST(Console, ColumnsOfTheTableLineUp) {
  std::vector<Record> records(120, example_record(CaseVerdict::kClean));
  records.push_back(example_record(CaseVerdict::kClean, "a_kernel_with_a_long_name"));
  std::istringstream lines(console_report(records));
  std::string line, header;
  while (std::getline(lines, line) && line.rfind("kernel", 0) != 0) {
  }
  header = line;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.size(), header.size()) << line;
  }
}

TEST(Console, LeavesOutOnlyColumnsWithoutACount) {
  const std::string clean = console_report({example_record(CaseVerdict::kClean)});
  EXPECT_NE(clean.find("cases  clean  finding  worst used\n"), std::string::npos) << clean;
  const std::string hung = console_report({example_record(CaseVerdict::kClean), example_record(CaseVerdict::kHung)});
  EXPECT_NE(hung.find("cases  clean  finding  hung  worst used\n"), std::string::npos) << hung;
}

TEST(Console, ListsWhatTheRunCouldHaveSeen) {
  const std::string text = console_report(one_of_each());
  EXPECT_NE(text.find("last key lost            1 of 3\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay
