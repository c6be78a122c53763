// Findings of one cause give one entry, whatever cases show it; two causes in one kernel give two.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "fuzz/draw.h"
#include "fuzz/finding_store.h"
#include "fuzz/generate.h"
#include "fuzz/minimize.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

/// A kernel that is one of several mutants, chosen by the call's parameters: so many causes in one kernel.
class SeveralFaults final : public Runner {
 public:
  using Choice = std::function<std::string(const Params&)>;
  SeveralFaults(const std::string& like, Choice choice)
      : worker_(worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)})),
        choice_(std::move(choice)) {
    for (const KernelIdentity& kernel : worker_->kernels())
      if (kernel.name == like) identity_ = kernel;
    identity_.name = "several";
  }
  std::vector<KernelIdentity> kernels() override { return {identity_}; }
  RunOutcome run(std::string_view, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    return worker_->run(choice_(params), params, inputs, outputs);
  }

 private:
  std::unique_ptr<Runner> worker_;
  Choice choice_;
  KernelIdentity identity_;
};

class Dedupe : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/assay_dedupe_XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  /// Adds the failures of drawn cases until there are so many.
  std::vector<StoredFinding> found_by(SeveralFaults& runner, int failures,
                                      const std::function<bool(const Case&)>& wanted) {
    const KernelIdentity kernel = runner.kernels()[0];
    FindingStore store(dir_);
    const FindingStore::Shrink shrink = shrinker(kernel.name, runner, {.runs = 300});
    Draw draw(7);
    const Choose choose = [&](std::size_t n) { return draw(n); };
    for (int tries = 0; tries < 20000 && failures > 0; ++tries) {
      const std::optional<Case> c = fresh_case(kernel.op, choose, {.elements = 12000});
      if (!c || !takes(kernel, *c) || !wanted(*c)) continue;
      const Record record = run_case(*c, kernel.name, runner);
      if (!is_failure(record)) continue;
      store.add(record, shrink);
      --failures;
    }
    EXPECT_EQ(failures, 0);
    store.flush();
    return store.findings();
  }
  std::string dir_;
};

bool causal(const Params& params) {
  const std::string* mask = params.find("mask");
  return mask != nullptr && mask->starts_with("causal");
}

TEST_F(Dedupe, DrawnCasesOfOneCauseGiveOneEntry) {
  SeveralFaults runner("fa2_bf16", [](const Params&) { return "fa2_bf16_last_key_dropped"; });
  const std::vector<StoredFinding> found = found_by(runner, 8, [](const Case&) { return true; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].count, 8);
  EXPECT_GT(found[0].seen_as.size(), 1U) << "they did not look the same before they were made smaller";
  EXPECT_EQ(found[0].smallest_line, "attention skv=2 d=1 q=constant k=constant v=constant");
}

TEST_F(Dedupe, TwoCausesInOneKernelGiveTwoEntriesWhenTheirModesDiffer) {
  SeveralFaults runner("fa2_bf16", [](const Params& params) {
    return causal(params) ? "fa2_bf16_mask_shifted_by_one" : "fa2_bf16_last_key_dropped";
  });
  const std::vector<StoredFinding> found = found_by(runner, 8, [](const Case&) { return true; });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].signature.mode, "dropped_keys");
  EXPECT_EQ(found[1].signature.mode, "mask_edge");
}

TEST_F(Dedupe, AndWhenOneModeHasThemAtTwoPlaces) {
  // Both lose keys: the last one under a causal mask, one of 128 elsewhere.
  SeveralFaults runner("fa2_bf16", [](const Params& params) {
    return causal(params) ? "fa2_bf16_last_key_dropped" : "fa2_bf16_key_of_128_dropped";
  });
  found_by(runner, 4, [](const Case& c) { return causal(c.params); });
  const std::vector<StoredFinding> found = found_by(runner, 2, [](const Case& c) { return !causal(c.params); });
  ASSERT_EQ(found.size(), 2U);
  for (const StoredFinding& finding : found) EXPECT_EQ(finding.signature.mode, "dropped_keys");
  EXPECT_EQ(found[0].signature.locus, "full");
  EXPECT_EQ(found[1].signature.locus, "part+masked");
}

}  // namespace
}  // namespace assay
