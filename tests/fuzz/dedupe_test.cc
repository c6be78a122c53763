// Findings of one cause give one entry, whatever cases show it; two causes in one kernel give two.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "fuzz/finding_store.h"
#include "fuzz/minimize.h"
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

  /// Takes in every failure among the lines; `failures`: how many there must be.
  std::vector<StoredFinding> found_by(SeveralFaults& runner, const std::vector<std::string>& lines, int failures) {
    FindingStore store(dir_);
    const FindingStore::Shrink shrink = shrinker("several", runner, {.runs = 400});
    for (const std::string& line : lines) {
      const Record record = run_case(parse_case(line), "several", runner);
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

std::string listed(const std::vector<StoredFinding>& found) {
  std::string text;
  for (const StoredFinding& finding : found)
    text += finding.folder + " " + std::to_string(finding.count) + " " + finding.smallest_line + "\n";
  return text;
}

bool causal(const Params& params) {
  const std::string* mask = params.find("mask");
  return mask != nullptr && mask->starts_with("causal");
}

const std::vector<std::string> kLines{
    "attention hq=4 hkv=2 sq=5 skv=150 d=32 q=normal@1 k=normal@2 v=normal@3",
    "attention b=2 sq=3 skv=40 d=16 window=9,4 q=normal@11 k=normal@12 v=normal@13",
    "attention sq=2 skv=300 d=16 softcap=8 q=normal(3)@21 k=normal@22 v=uniform(-2,2)@23",
    "attention sq=3 skv=130 d=24 out=fp32 q=probe@3 k=rising(1,16)@4 v=normal@5",
    "attention sq=20 skv=33 d=16 mask=causal q=normal@31 k=normal@32 v=normal@33",
    "attention b=2 sq=9 skv=70 d=16 batch=padded q_lens=9,4 kv_lens=70,30 mask=causal q=normal@41 k=normal@42 "
    "v=normal@43",
    "attention sq=2 skv=140 d=16 mask=causal q=normal(2)@51 k=normal@52 v=normal@53"};

TEST_F(Dedupe, CasesOfOneCauseGiveOneEntry) {
  SeveralFaults runner("fa2_bf16", [](const Params&) { return "fa2_bf16_last_key_dropped"; });
  const std::vector<StoredFinding> found = found_by(runner, kLines, 7);
  ASSERT_EQ(found.size(), 1U) << listed(found);
  EXPECT_EQ(found[0].count, 7);
  EXPECT_GT(found[0].seen_as.size(), 1U) << "they did not look the same before they were made smaller";
  EXPECT_EQ(found[0].smallest_line, "attention skv=2 d=1 q=constant k=constant v=constant");
}

TEST_F(Dedupe, TwoCausesInOneKernelGiveTwoEntriesWhenTheirModesDiffer) {
  SeveralFaults runner("fa2_bf16", [](const Params& params) {
    return causal(params) ? "fa2_bf16_mask_shifted_by_one" : "fa2_bf16_last_key_dropped";
  });
  const std::vector<StoredFinding> found = found_by(runner, kLines, 7);
  ASSERT_EQ(found.size(), 2U) << listed(found);
  EXPECT_EQ(found[0].signature.mode, "dropped_keys");
  EXPECT_EQ(found[0].count, 4);
  EXPECT_EQ(found[1].signature.mode, "mask_edge");
  EXPECT_EQ(found[1].count, 3);
}

TEST_F(Dedupe, AndWhenOneModeHasThemAtTwoPlaces) {
  // Both lose keys: the last one under a causal mask, one of 128 elsewhere.
  SeveralFaults runner("fa2_bf16", [](const Params& params) {
    return causal(params) ? "fa2_bf16_last_key_dropped" : "fa2_bf16_key_of_128_dropped";
  });
  const std::vector<StoredFinding> found = found_by(runner, kLines, 6);
  ASSERT_EQ(found.size(), 2U) << listed(found);
  for (const StoredFinding& finding : found) EXPECT_EQ(finding.signature.mode, "dropped_keys");
  EXPECT_EQ(found[0].signature.locus, "full");
  EXPECT_EQ(found[1].signature.locus, "part+masked");
}

}  // namespace
}  // namespace assay
