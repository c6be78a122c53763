// Tests of the shared parts of the reports: table, groups, repro line, detection counts.
#include "reports/view.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/reports/example.h"

namespace assay {
namespace {

TEST(View, VerdictLineNamesTheOutcomeEveryCountAndTheBoundLevel) {
  EXPECT_EQ(verdict_line({example_record(CaseVerdict::kClean)}), "PASS: 1 case, 1 clean; bounds T0; exit 0");
  EXPECT_EQ(verdict_line({}), "NOTHING TESTED: 0 cases; exit 6");
  EXPECT_EQ(verdict_line({example_record(CaseVerdict::kCrashed)}), "CRASHED: 1 case, 1 crashed; exit 5");
  EXPECT_EQ(verdict_line(one_of_each()),
            "FAIL: 9 cases, 1 finding, 1 unclassified failure, 1 crashed, 1 hung, 1 clean, 1 out of range, 1 vacuous, "
            "1 uncertain, 1 skipped; bounds T0; exit 1");
}

TEST(View, WarningsAreCountedAndGroupedButFailNothing) {
  Record one = example_record(CaseVerdict::kClean), two = one;
  one.warnings = {"12 elements lie outside T1"};
  two.warnings = {"3 elements lie outside T1"};
  EXPECT_EQ(verdict_line({one, two}), "PASS: 2 cases, 2 clean, 2 with warnings; bounds T0; exit 0");
  const auto groups = warnings({one, two, example_record(CaseVerdict::kClean)});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].first, "fa2_bf16: 12 elements lie outside T1");
  EXPECT_EQ(groups[0].second, 2);
}

TEST(View, TightnessHasOneRowPerKernelOutputAndLevel) {
  Record record = example_record(CaseVerdict::kClean);
  record.measurement.outputs[0].median_tau_ulp = 2.5;
  TierMeasure tier;
  tier.judged = 50;
  tier.bit_equal = 49;
  tier.median_tau_ulp = 0.25;
  tier.worst.used = 0.75;
  record.measurement.outputs[0].tiers = {tier};
  const auto rows = tightness({record, record, example_record(CaseVerdict::kVacuous)});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].role + rows[0].level, "oT0");
  EXPECT_EQ(rows[0].elements, 192);
  EXPECT_EQ(rows[1].level, "T1");
  EXPECT_EQ(rows[1].elements, 100);
  EXPECT_DOUBLE_EQ(rows[1].bit_equal, 0.98);
  EXPECT_EQ(rows[1].median_tau_ulp, 0.25);
  EXPECT_EQ(rows[1].worst_used, 0.75);
  for (const Tightness& row : rows) EXPECT_EQ(tightness_cells(row).size(), tightness_header().size());
}

TEST(View, TheWorstElementIsTheOneThatFailsAtTheWeakestLevel) {
  Record record = example_record(CaseVerdict::kClean);
  TierMeasure tier;
  tier.rejected = 1;
  tier.worst = {.element = 5, .used = 3, .rejected = true};
  record.measurement.outputs[0].tiers = {tier};
  EXPECT_EQ(worst_element(record.measurement.outputs[0]).element, 5);
  EXPECT_EQ(worst_used(record), 3);
  EXPECT_NE(describe_worst(record).find("1 at T1"), std::string::npos);
  record.measurement.outputs[0].worst.rejected = true;
  EXPECT_EQ(worst_element(record.measurement.outputs[0]).element, 17);
}

TEST(View, ReproCommandIsOneShellWordPerArgument) {
  Record record = example_record(CaseVerdict::kFinding);
  record.case_line = "attention q=file(it's.safetensors,q,00)";
  EXPECT_EQ(repro_command(record), "assay repro 'attention q=file(it'\\''s.safetensors,q,00)' --kernel fa2_bf16");
}

TEST(View, TableHasOneRowPerKernelAndSuiteAndItsTotalsAreTheRecords) {
  std::vector<Record> records = one_of_each();
  records.push_back(example_record(CaseVerdict::kClean, "split_kv_fp16"));
  records.push_back(example_record(CaseVerdict::kClean, "fa2_bf16", "real"));
  records.push_back(example_record(CaseVerdict::kSkipped, "fa2_bf16", "real"));
  records.push_back(example_record(CaseVerdict::kClean));  // after the finding: must not lower its row's ratio
  const auto rows = table(records);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].kernel + rows[0].suite, "fa2_bf16edge");
  EXPECT_EQ(rows[2].kernel + rows[2].suite, "fa2_bf16real");
  std::int64_t cases = 0, clean = 0;
  for (const TableRow& row : rows) {
    cases += row.summary.cases;
    clean += row.summary.clean;
    EXPECT_EQ(table_cells(row).size(), table_header().size());
  }
  EXPECT_EQ(cases, 13);
  EXPECT_EQ(clean, 4);
  EXPECT_EQ(rows[0].worst_used, 31.25);
  EXPECT_EQ(rows[2].worst_used, 0.5);
  EXPECT_EQ(table_cells(rows[2]),
            (std::vector<std::string>{"fa2_bf16", "real", "2", "1", "0", "0", "0", "0", "0", "1", "0", "0", "0.5"}));
}

TEST(View, ARowWithoutAJudgedCaseShowsNoRatio) {
  const auto rows = table({example_record(CaseVerdict::kVacuous)});
  EXPECT_EQ(table_cells(rows.at(0)).back(), "-");
}

TEST(View, EveryRecordThatIsNotCleanIsInExactlyOneGroup) {
  const std::vector<Record> records = one_of_each();
  std::size_t grouped = 0;
  for (const Group& group : failures(records)) grouped += group.records.size();
  EXPECT_EQ(grouped, 4U);
  for (const Group& group : not_judged(records)) grouped += group.records.size();
  EXPECT_EQ(grouped, 8U);
}

TEST(View, ReasonsThatDifferOnlyInNumbersAreOneGroup) {
  std::vector<Record> records(3, example_record(CaseVerdict::kOutOfRange));
  records[0].verdict.reason = "P overflow: shift residual 31.2 > 16";
  records[1].verdict.reason = "P overflow: shift residual 40.95 > 16";
  records[2].verdict.reason = "S: 7e4 > 65504";
  const auto groups = not_judged(records);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].records.size(), 2U);
  EXPECT_EQ(groups[0].cause, "P overflow: shift residual #.# > #");
}

TEST(View, FindingsAreGroupedByKernelAndModeLargestFirst) {
  std::vector<Record> records = {example_record(CaseVerdict::kFinding, "a"), example_record(CaseVerdict::kFinding, "b"),
                                 example_record(CaseVerdict::kFinding, "b")};
  records[2].verdict.evidence = "other numbers";
  const auto groups = failures(records);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].kernel, "b");
  EXPECT_EQ(groups[0].cause, "zero_rows");
  EXPECT_EQ(groups[0].records.size(), 2U);
}

TEST(View, WorstElementIsTheOneThatUsedMostOverAllOutputs) {
  Record record = example_record(CaseVerdict::kFinding);
  EXPECT_EQ(worst_output(record)->role, "o");
  EXPECT_EQ(describe_worst(record),
            "o element 17 (row 1): 0x3f80 = 1, truth 0.875 +- 1e-17, tau 0.004, used 31.25; 48 of 96 rejected");
  record.measurement.outputs[1].worst.used = std::numeric_limits<double>::infinity();
  EXPECT_EQ(worst_output(record)->role, "lse");
  EXPECT_EQ(short_number(worst_used(record)), "inf");
  EXPECT_EQ(worst_output(example_record(CaseVerdict::kSkipped)), nullptr);
}

TEST(View, DetectionCountsOnlyJudgedCasesWhereTheWrongOutputDiffers) {
  const auto counts = detection(one_of_each());  // clean, finding and unclassified carry known_wrong
  EXPECT_EQ(counts.at("zero"), (std::pair<std::int64_t, std::int64_t>{3, 3}));
  EXPECT_EQ(counts.at("last key lost"), (std::pair<std::int64_t, std::int64_t>{1, 3}));
  EXPECT_EQ(counts.at("shuffled"), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  EXPECT_EQ(assumptions(one_of_each()).at("ex2.approx is within 2 ulp"), 3);
}

TEST(View, EnvironmentLinesKeepNestedNames) {
  const auto lines = environment_lines({{"date", "today"}, {"host", {{"cores", 2}}}});
  EXPECT_EQ(lines, (std::vector<std::pair<std::string, std::string>>{{"date", "today"}, {"host.cores", "2"}}));
}

}  // namespace
}  // namespace assay
