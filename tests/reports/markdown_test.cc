// Tests of the Markdown report: the verdict first, tables that stay tables, code blocks that cannot be broken out of.
#include "reports/markdown.h"

#include <gtest/gtest.h>

#include <sstream>
#include <nlohmann/json.hpp>

#include "reports/view.h"
#include "tests/reports/example.h"

namespace assay {
namespace {

const nlohmann::json kEnvironment = {{"date", "2025-01-31T12:00:00Z"}, {"host", {{"cpu", "A|B"}}}};

TEST(Markdown, StartsWithTheVerdict) {
  EXPECT_EQ(markdown_report(one_of_each(), kEnvironment).find("**" + verdict_line(one_of_each()) + "**\n"), 0U);
}

TEST(Markdown, EscapesWhatWouldBreakATable) {
  EXPECT_EQ(markdown_cell("a|b<i>&\n`c`*d*\\"), "a\\|b&lt;i&gt;&amp; \\`c\\`\\*d\\*\\\\");
  EXPECT_EQ(markdown_cell("fa2_bf16"), "fa2_bf16");
}

TEST(Markdown, EveryTableLineHasTheCellsOfItsHeader) {
  std::vector<Record> records = one_of_each();
  for (Record& record : records) record.verdict.reason = "P | overflow\n> 16";
  std::istringstream lines(markdown_report(records, kEnvironment));
  std::size_t header_cells = 0;
  int rows = 0;
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|') {
      in_table = false;
      continue;
    }
    const std::size_t cells = count_of(line, "|") - count_of(line, "\\|");
    if (!in_table) header_cells = cells;
    in_table = true;
    ++rows;
    EXPECT_EQ(cells, header_cells) << line;
  }
  EXPECT_GE(rows, 2 + 1 + 2 + 4 + 2 + 3 + 2 + 2);
}

TEST(Markdown, ShowsTheWorstCaseOfEachGroupWithItsReproLine) {
  std::vector<Record> records(3, example_record(CaseVerdict::kFinding));
  records[1].case_line = "attention worst";
  records[1].measurement.outputs[0].worst.used = std::numeric_limits<double>::infinity();
  const std::string text = markdown_report(records, kEnvironment);
  EXPECT_EQ(count_of(text, "assay repro"), 1U) << text;
  EXPECT_NE(text.find("\n" + repro_command(records[1]) + "\n```\n"), std::string::npos) << text;
  EXPECT_NE(text.find("zero_rows, 3 cases"), std::string::npos) << text;
}

TEST(Markdown, ACaseLineCannotEndItsCodeBlock) {
  Record record = example_record(CaseVerdict::kFinding);
  record.case_line = "```` # heading";
  const std::string text = markdown_report({record}, kEnvironment);
  EXPECT_EQ(count_of(text, "`````\n"), 2U) << text;
}

TEST(Markdown, ShowsReasonsDetectionAssumptionsAndEnvironment) {
  const std::string text = markdown_report(one_of_each(), kEnvironment);
  EXPECT_NE(text.find("| vacuous | 1 | head dim 16 &lt; 32 is \"too small\" |"), std::string::npos) << text;
  EXPECT_NE(text.find("| last key lost | 1 | 3 |"), std::string::npos) << text;
  EXPECT_NE(text.find("- ex2.approx is within 2 ulp (3 records)"), std::string::npos) << text;
  EXPECT_NE(text.find("| host.cpu | A\\|B |"), std::string::npos) << text;
}

TEST(Markdown, ManyGroupsAreCutButCounted) {
  std::vector<Record> records;
  for (char c = 'a'; c <= 'z'; ++c)
    for (const char* rest : {"1", "_x"})
      records.push_back(example_record(CaseVerdict::kFinding, std::string(1, c) + rest));
  const std::string text = markdown_report(records, kEnvironment);
  EXPECT_EQ(count_of(text, "assay repro"), 40U);
  EXPECT_NE(text.find("12 more groups are in the JSON."), std::string::npos);
}

}  // namespace
}  // namespace assay
