// A campaign's exit code, its views, and the progress line.
#include "reports/campaign.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/campaign_markdown.h"
#include "reports/campaign_progress.h"

namespace assay {
namespace {

CampaignSummary clean_campaign() {
  CampaignSummary s;
  s.command = "assay fuzz";
  s.seconds = 60;
  s.done.executions = 1000;
  s.done.seconds = 100;
  s.done.verdicts = {{"clean", 900}, {"vacuous", 100}};
  s.done.kernels["fa2_bf16"] = {.executions = 1000, .worst = {{"T0 o", 0.5}, {"T1 o", 0.875}}, .regimes = {"long"}};
  s.reached["attention"] = {"long"};
  s.never_reached["attention"] = {"short"};
  s.corpus["attention"] = 12;
  return s;
}

CampaignFinding finding(const std::string& known) {
  return {.folder = "d/f",
          .kernel = "k",
          .signature = "attention-x-tail-gross",
          .smallest = "attention",
          .worst_used = 40,
          .times = 3,
          .known = known};
}

TEST(CampaignSummary, HasTheExitCodeOfTheWorstThatIsNotKnown) {
  CampaignSummary s = clean_campaign();
  EXPECT_EQ(exit_code(s), 0);
  s.quarantine.push_back({.name = "crash-1", .kind = "crashed", .known = "12"});
  s.findings.push_back(finding("34"));
  EXPECT_EQ(exit_code(s), 0) << "all are known";
  s.quarantine.push_back({.name = "crash-2", .kind = "crashed"});
  EXPECT_EQ(exit_code(s), 5);
  s.quarantine.pop_back();
  s.findings.push_back(finding(""));
  s.findings.back().ended = true;
  EXPECT_EQ(exit_code(s), 5) << "a crash of a plug-in's own process";
  s.findings.push_back(finding(""));
  EXPECT_EQ(exit_code(s), 1);
  s = clean_campaign();
  s.passes.push_back("34");
  EXPECT_EQ(exit_code(s), 1);
  s = clean_campaign();
  s.done.verdicts = {{"vacuous", 100}, {"skipped", 4}};
  EXPECT_EQ(exit_code(s), 6);
}

TEST(CampaignSummary, SaysInMarkdownWhatWasReachedFoundAndNever) {
  CampaignSummary s = clean_campaign();
  s.findings = {finding(""), finding("34")};
  s.quarantine.push_back({.name = "crash-2", .kind = "crashed", .kernels = {"k"}, .how = "signal 11 (SIGSEGV)"});
  const std::string text = campaign_markdown(s, {{"date", "today"}});
  for (const char* part :
       {"**FAIL: 1000 executions in 60 s, 900 judged, 900 clean, 1 finding, 1 crashing or hanging input, 1 known "
        "failure; exit 1**",
        "| k | attention-x-tail-gross | attention | 40 | 3 | 34 | d/f |",
        "| crash-2 | crashed | k | signal 11 (SIGSEGV) | 1 |  |", "| fa2_bf16 | 1000 | 1 | T0 o 0.5, T1 o 0.875 |",
        "1 reached, 1 never reached: short.", "| date | today |"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(CampaignSummary, ItsJsonReadsBackWhatWasExecuted) {
  const nlohmann::json document = to_json(clean_campaign(), {});
  const std::string file = "summary.json";
  const Executions back = executions_from_json(JsonField(document.at("done"), "done", file));
  EXPECT_EQ(to_json(back), document.at("done"));
  EXPECT_EQ(document.at("regimes_never_reached").at("attention"), nlohmann::json({"short"}));
}

TEST(Executions, AddUpCountsAndKeepTheWorst) {
  Executions a = clean_campaign().done;
  Executions b;
  b.executions = 5;
  b.verdicts = {{"clean", 5}};
  b.kernels["fa2_bf16"] = {.executions = 5, .worst = {{"T0 o", 0.75}, {"T1 o", 0.25}}, .regimes = {"short"}};
  a += b;
  EXPECT_EQ(a.executions, 1005);
  EXPECT_EQ(a.judged(), 905);
  const KernelExecutions& kernel = a.kernels.at("fa2_bf16");
  EXPECT_EQ(kernel.executions, 1005);
  EXPECT_EQ(kernel.worst, (std::map<std::string, double>{{"T0 o", 0.75}, {"T1 o", 0.875}}));
  EXPECT_EQ(kernel.regimes, (std::set<std::string>{"long", "short"}));
}

TEST(CampaignProgress, ShowsTimeCountsAndWhatItDoes) {
  CampaignView view{.seconds = 10,
                    .left = 545,
                    .done = clean_campaign().done,
                    .rate = 812.4,
                    .corpus = 12,
                    .findings = 1,
                    .doing = "fuzzing"};
  EXPECT_EQ(campaign_line(view), "9 min left, 1000 executions, 812/s, corpus 12, 1 finding, 1 regime; fuzzing");
  view.left = -1;
  view.findings = 0;
  view.quarantined = 2;
  EXPECT_EQ(campaign_line(view),
            "10 s, 1000 executions, 812/s, corpus 12, 0 findings, 1 regime, 2 in quarantine; fuzzing");
}

TEST(CampaignProgress, WritesALineAMinuteWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  CampaignProgress progress(file);
  const CampaignProgress::Clock::time_point start;
  const CampaignView view{.doing = "x"};
  for (int second = 0; second <= 120; second += 20) progress.show(view, start + std::chrono::seconds(second));
  const auto line = static_cast<long>(campaign_line(view).size()) + 1;
  EXPECT_EQ(std::ftell(file), 3 * line) << "at 0, 60 and 120 s";
  std::fclose(file);
}

TEST(Duration, IsShownInTwoUnitsAtMost) {
  EXPECT_EQ(duration_text(119.9), "119 s");
  EXPECT_EQ(duration_text(600), "10 min");
  EXPECT_EQ(duration_text(3 * 3600 + 300), "3 h 05 min");
  EXPECT_EQ(duration_text(52 * 3600), "2 d 04 h");
}

}  // namespace
}  // namespace assay
