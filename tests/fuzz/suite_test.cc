// Suites: distinct lines, a pairwise cover, long keys in a quarter of them; and no correct kernel has a finding on a
// sample.
#include <algorithm>
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

/// A suite's cases, made once: a pairwise cover takes a second.
const std::vector<Case>& cases_of(const std::string& suite) {
  static std::map<std::string, std::vector<Case>> made;
  const auto [at, absent] = made.try_emplace(suite);
  if (absent) at->second = suite_cases(suite);
  return at->second;
}

TEST(Suites, EveryLineIsDistinctAndCanonical) {
  std::set<std::string> seen;
  for (const SuiteInfo& suite : all_suites())
    for (const Case& c : cases_of(std::string(suite.name))) {
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
    for (const Case& c : cases_of(suite))
      if (c.op == "attention" && lines.insert(print_case(c)).second)
        long_keys += attention_params(c.params).len_kv >= 1024;
  EXPECT_GE(lines.size(), 2000U);
  EXPECT_GE(4 * long_keys, lines.size());
}

TEST(Suites, EveryOpHasItsCasesAndKernelsThatTakeEachOfThem) {
  const std::vector<KernelIdentity> kernels = in_process_runner()->kernels();
  std::map<std::string, std::set<std::string>> lines;
  for (const char* suite : {"edge", "adversarial"})
    for (const Case& c : cases_of(suite)) {
      lines[c.op].insert(print_case(c));
      EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](const KernelIdentity& k) { return takes(k, c); }))
          << print_case(c);
      EXPECT_TRUE(coverage_cells(c).contains("recipe") && coverage_cells(c).contains("dtype")) << print_case(c);
    }
  for (const Op* op : all_ops()) EXPECT_GE(lines[std::string(op->name)].size(), 150U) << op->name;
}

TEST(Suites, AKernelTakesCasesOfItsOpAndFormatOnly) {
  const KernelIdentity bf16{.name = "k", .op = "merge", .summary = {}, .expects = {}, .dtypes = {"bf16"}};
  const KernelIdentity any{.name = "k", .op = "softmax", .summary = {}, .expects = {}, .dtypes = {}};
  EXPECT_TRUE(takes(bf16, parse_case("merge")));
  EXPECT_FALSE(takes(bf16, parse_case("merge dtype=fp16")));
  EXPECT_FALSE(takes(bf16, parse_case("attention")));
  EXPECT_TRUE(takes(any, parse_case("softmax dtype=fp32")));
  EXPECT_EQ(run_case(parse_case("merge"), "softmax_online_bf16", *in_process_runner()).verdict.kind,
            CaseVerdict::kSkipped);
}

TEST(Suites, AdversarialCoversEveryPairOfRecipeMaskLayoutDtypeAndResidue) {
  const std::vector<std::string> cells{"recipe", "mask", "layout", "dtype", "residue"};
  std::map<std::string, std::set<std::string>> values;
  std::set<std::string> pairs;
  const auto pair = [](const auto& a, const auto& va, const auto& b, const auto& vb) {
    return a + "=" + va + " " + b + "=" + vb;
  };
  for (const Case& c : cases_of("adversarial")) {
    if (c.op != "attention") continue;
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
  // Every 47th line here; `assay check` runs them all.
  constexpr std::size_t kStride = 47;
  const auto runner = in_process_runner();
  std::size_t judged = 0, clean = 0, index = 0;
  for (const char* suite : {"edge", "adversarial", "llm_like"})
    for (const Case& c : cases_of(suite)) {
      if (index++ % kStride != 0) continue;
      for (const KernelIdentity& kernel : runner->kernels()) {
        if (!takes(kernel, c)) continue;
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
  EXPECT_GE(judged, 150U);
  EXPECT_GE(static_cast<double>(clean), 0.95 * static_cast<double>(judged));
}

}  // namespace
}  // namespace assay
