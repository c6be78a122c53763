// The catalogue as a whole: every mode has an entry, a witness and a mutant; the mutant is named on the witness and the
// correct kernel is clean there; mutants without a mode are found all the same.
#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

std::string first_line(const std::string& file) {
  std::ifstream in(find_data_file(file));
  std::string line;
  std::getline(in, line);
  return line;
}

Case witness(const std::string& mode) { return parse_case(first_line("failure_catalog/" + mode + "/witness.case")); }

class Catalogue : public ::testing::Test {
 protected:
  void SetUp() override {
    mutants_ = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
    correct_ = in_process_runner();
  }
  /// Those of the host; device mutants stand in tests/device.
  std::vector<KernelIdentity> mutants() {
    std::vector<KernelIdentity> all;
    for (KernelIdentity& kernel : mutants_->kernels())
      if (kernel.mutant && !kernel.device) all.push_back(std::move(kernel));
    return all;
  }
  std::unique_ptr<Runner> mutants_, correct_;
};

TEST_F(Catalogue, EveryModeHasAnEntryAWitnessAndAMutant) {
  ASSERT_GE(all_modes().size(), 3U);
  std::map<std::string, int> expected;
  for (const KernelIdentity& mutant : mutants()) ++expected[mutant.expects];
  for (const Mode* mode : all_modes()) {
    const std::string folder = "failure_catalog/" + std::string(mode->name);
    EXPECT_EQ(first_line(folder + "/entry.md"), "# " + std::string(mode->id) + " " + std::string(mode->name));
    EXPECT_NO_THROW(parse_case(first_line(folder + "/witness.case"))) << mode->name;
    EXPECT_GE(expected[std::string(mode->name)], 1) << mode->name << " has no mutant: a mode without one is an opinion";
  }
}

TEST_F(Catalogue, EveryMutantIsNamedOnTheWitnessOfItsMode) {
  std::map<std::string, int> named;
  for (const KernelIdentity& mutant : mutants()) {
    if (mutant.expects.empty()) continue;
    ASSERT_NE(find_mode(mutant.expects), nullptr) << mutant.name;
    const Record record = run_case(witness(mutant.expects), mutant.name, *mutants_);
    if (record.verdict.kind == CaseVerdict::kSkipped) continue;  // of another op, dtype or store: the suites reach it
    ++named[mutant.expects];
    EXPECT_EQ(record.verdict.kind, CaseVerdict::kFinding) << mutant.name << ": " << record.verdict.reason;
    EXPECT_EQ(record.verdict.mode, mutant.expects) << mutant.name << ": " << record.verdict.evidence;
    EXPECT_FALSE(record.verdict.evidence.empty());
  }
  for (const Mode* mode : all_modes()) EXPECT_GT(named[std::string(mode->name)], 0) << mode->name;
}

TEST_F(Catalogue, TheCorrectKernelsAreCleanOnEveryWitness) {
  for (const Mode* mode : all_modes())
    for (const KernelIdentity& kernel : correct_->kernels()) {
      const Record clean = run_case(witness(std::string(mode->name)), kernel.name, *correct_);
      EXPECT_TRUE(clean.verdict.kind == CaseVerdict::kClean || clean.verdict.kind == CaseVerdict::kSkipped)
          << kernel.name << " on the witness of " << mode->name << ": " << clean.verdict.evidence << clean.verdict.reason;
    }
}

TEST_F(Catalogue, AMutantsModeIsNamedWhereverItFails) {
  for (const KernelIdentity& mutant : mutants()) {
    if (mutant.expects.empty()) continue;
    int found = 0;
    for (const Case& c : suite_cases("smoke")) {
      const Record record = run_case(c, mutant.name, *mutants_);
      if (record.verdict.kind != CaseVerdict::kFinding && record.verdict.kind != CaseVerdict::kUnclassified) continue;
      ++found;
      EXPECT_EQ(record.verdict.mode, mutant.expects) << mutant.name << " " << record.case_line << ": " << record.verdict.evidence;
    }
    EXPECT_GT(found, 0) << mutant.name;
  }
}

TEST_F(Catalogue, MutantsWithoutAModeAreFound) {
  const std::vector<Case> smoke = suite_cases("smoke");
  for (const KernelIdentity& mutant : mutants()) {
    if (!mutant.expects.empty()) continue;
    const bool found = std::any_of(smoke.begin(), smoke.end(), [&](const Case& c) {
      if (!takes(mutant, c)) return false;
      const CaseVerdict verdict = run_case(c, mutant.name, *mutants_, Level::kT1, {.runs = 2}).verdict.kind;
      return verdict == CaseVerdict::kFinding || verdict == CaseVerdict::kUnclassified;
    });
    EXPECT_TRUE(found) << mutant.name << " survives the whole smoke suite";
  }
}

}  // namespace
}  // namespace assay
