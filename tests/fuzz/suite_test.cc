// Suites: distinct lines, a pairwise cover, long keys in a quarter of them; and no correct kernel has a finding on a sample.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "cases/recipes.h"
#include "fuzz/pairwise.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "oracle/error.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

TEST(Suites, EveryLineIsDistinctAndCanonical) {
  std::set<std::string> seen;
  for (const SuiteInfo& suite : all_suites())
    for (const Case& c : suite_cases(suite.name)) {
      const std::string line = print_case(c);
      EXPECT_EQ(parse_case(line), c) << line;
      EXPECT_TRUE(seen.insert(std::string(suite.name) + " " + line).second) << line;
    }
  EXPECT_THROW(suite_cases("no such suite"), InputError);
}

TEST(Suites, TheFourThatGateHaveTwoThousandCasesAndAQuarterWithLongKeys) {
  std::set<std::string> lines;
  std::size_t long_keys = 0;
  for (const char* suite : {"edge", "adversarial", "real", "llm_like"})
    for (const Case& c : suite_cases(suite))
      if (lines.insert(print_case(c)).second) long_keys += attention_params(c.params).len_kv >= 1024;
  EXPECT_GE(lines.size(), 2000U);
  EXPECT_GE(4 * long_keys, lines.size());
}

TEST(Suites, AdversarialCoversEveryPairOfRecipeMaskLayoutDtypeAndResidue) {
  const std::vector<std::string> cells{"recipe", "mask", "layout", "dtype", "residue"};
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> pairs;
  const auto pair = [](const auto& a, const auto& va, const auto& b, const auto& vb) { return a + "=" + va + " " + b + "=" + vb; };
  for (const Case& c : suite_cases("adversarial")) {
    const auto cell = coverage_cells(c);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values[cells[i]].insert(cell.at(cells[i]));
      for (std::size_t j = i + 1; j < cells.size(); ++j)
        pairs.insert(pair(cells[i], cell.at(cells[i]), cells[j], cell.at(cells[j])));
    }
  }
  EXPECT_GE(values["recipe"].size(), 20U);
  EXPECT_GE(values["mask"].size(), 10U);
  EXPECT_GE(values["layout"].size(), 6U);
  for (std::size_t i = 0; i < cells.size(); ++i)
    for (std::size_t j = i + 1; j < cells.size(); ++j)
      for (const std::string& a : values[cells[i]])
        for (const std::string& b : values[cells[j]])
          EXPECT_TRUE(pairs.contains(pair(cells[i], a, cells[j], b))) << pair(cells[i], a, cells[j], b);
}

TEST(Suites, NoCorrectKernelHasAFindingOnASample) {
  // Every 12th line here; `assay check` runs them all.
  constexpr std::size_t kStride = 12;
  const auto runner = in_process_runner();
  std::size_t judged = 0, clean = 0, index = 0;
  for (const char* suite : {"edge", "adversarial", "llm_like"})
    for (const Case& c : suite_cases(suite)) {
      if (index++ % kStride != 0) continue;
      for (const KernelIdentity& kernel : runner->kernels()) {
        const Record record = run_case(c, kernel.name, *runner);
        const CaseVerdict kind = record.verdict.kind;
        if (kind == CaseVerdict::kSkipped) continue;
        ASSERT_TRUE(kind == CaseVerdict::kClean || kind == CaseVerdict::kVacuous || kind == CaseVerdict::kOutOfRange)
            << kernel.name << " " << print_case(c) << ": " << record.verdict.evidence << record.verdict.reason;
        if (leaves_range(c)) continue;
        ++judged;
        clean += kind == CaseVerdict::kClean;
      }
    }
  EXPECT_GE(judged, 300U);
  EXPECT_GE(static_cast<double>(clean), 0.95 * static_cast<double>(judged));
}

}  // namespace
}  // namespace assay
