// The catalogue as a whole: every mode has an entry, a witness and a mutant; the mutant is named on the witness and the
// correct kernel is clean there; mutants without a mode are found all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

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

/// One case per line: what one mutant needs another may not take.
std::vector<Case> witnesses(std::string_view mode) {
  std::ifstream in(find_data_file("failure_catalog/" + std::string(mode) + "/witness.case"));
  std::vector<Case> all;
  for (std::string line; std::getline(in, line);) all.push_back(parse_case(line));
  return all;
}

bool failed(const Record& record) {
  return record.verdict.kind == CaseVerdict::kFinding || record.verdict.kind == CaseVerdict::kUnclassified;
}

constexpr Repeats kTwice{.runs = 2};

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
    EXPECT_FALSE(witnesses(mode->name).empty()) << mode->name;
    EXPECT_GE(expected[std::string(mode->name)], 1) << mode->name << " has no mutant: a mode without one is an opinion";
  }
}

// On the first that it fails, from a line of its own on, so that together they use all of a mode's lines.
TEST_F(Catalogue, EveryMutantIsNamedOnAWitnessOfItsMode) {
  std::size_t number = 0;
  for (const KernelIdentity& mutant : mutants()) {
    if (mutant.expects.empty()) continue;
    ASSERT_NE(find_mode(mutant.expects), nullptr) << mutant.name;
    std::vector<Case> lines = witnesses(mutant.expects);
    std::erase_if(lines, [&](const Case& c) { return !takes(mutant, c); });
    bool fails = false;
    for (std::size_t n = 0; n < lines.size() && !fails; ++n) {
      const Case& c = lines[(number + n) % lines.size()];
      const Record record = run_case(c, mutant.name, *mutants_, Level::kT1, kTwice);
      if (!failed(record)) continue;
      EXPECT_EQ(record.verdict.mode, mutant.expects)
          << mutant.name << " " << record.case_line << ": " << record.verdict.evidence;
      EXPECT_FALSE(record.verdict.evidence.empty());
      fails = true;
    }
    EXPECT_TRUE(fails) << mutant.name;
    ++number;
  }
}

TEST_F(Catalogue, NoCorrectKernelFailsOnAWitness) {
  for (const Mode* mode : all_modes())
    for (const Case& c : witnesses(mode->name))
      for (const KernelIdentity& kernel : correct_->kernels()) {
        if (!takes(kernel, c)) continue;
        const Record clean = run_case(c, kernel.name, *correct_, Level::kT1, kTwice);
        EXPECT_FALSE(failed(clean) || clean.verdict.kind == CaseVerdict::kCrashed)
            << kernel.name << " on " << clean.case_line << " of " << mode->name << ": " << clean.verdict.evidence
            << clean.verdict.reason;
      }
}

TEST_F(Catalogue, AMutantsModeIsNamedWhereItFailsFirst) {
  constexpr std::size_t kEvery =
      4;  // mutants, for the time it takes; `assay mutants --part confusion` asks all of them
  const std::vector<Case> smoke = suite_cases("smoke");
  std::size_t number = 0;
  for (const KernelIdentity& mutant : mutants()) {
    if (mutant.expects.empty() || ++number % kEvery != 0) continue;
    for (const Case& c : smoke) {
      if (!takes(mutant, c)) continue;
      const Record record = run_case(c, mutant.name, *mutants_, Level::kT1, kTwice);
      if (!failed(record)) continue;
      EXPECT_EQ(record.verdict.mode, mutant.expects)
          << mutant.name << " " << record.case_line << ": " << record.verdict.evidence;
      break;
    }
  }
}

TEST_F(Catalogue, EveryMutantHasAMode) {
  for (const KernelIdentity& mutant : mutants())
    EXPECT_NE(find_mode(mutant.expects), nullptr) << mutant.name << " " << mutant.expects;
}

}  // namespace
}  // namespace assay
