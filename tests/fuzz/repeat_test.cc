// Repeated runs: which bits differ is said with both patterns, and why; equal bits say nothing.
#include "fuzz/repeat.h"

#include <gtest/gtest.h>

#include <functional>

#include "fuzz/pipeline.h"

namespace assay {
namespace {

/// A sound kernel of this program, whose outcome the test changes; counts runs and fresh processes.
class Changing final : public Runner {
 public:
  using Change = std::function<void(RunOutcome&, int run, const std::vector<Tensor>& inputs, int fill)>;
  explicit Changing(Change change) : sound_(in_process_runner()), change_(std::move(change)) {}

  std::vector<KernelIdentity> kernels() override { return sound_->kernels(); }
  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    RunOutcome outcome = sound_->run(kernel, params, inputs, outputs);
    change_(outcome, runs++, inputs, fill_);
    return outcome;
  }
  void set_fill(int fill) override { fill_ = fill; }
  void restart() override { ++restarts; }

  int runs = 0, restarts = 0;

 private:
  std::unique_ptr<Runner> sound_;
  Change change_;
  int fill_ = 0;
};

constexpr const char* kKernel = "softmax_two_pass_bf16";
constexpr const char* kLine = "softmax rows=2 n=5 pad=3 lse=e";

void flip(RunOutcome& outcome, std::int64_t element) {
  Tensor& y = outcome.outputs[0];
  y.output().set_code(element, y.view().code(element) ^ 1U);
}

Record record_of(Changing& runner, const Repeats& repeats) {
  return run_case(parse_case(kLine), kKernel, runner, Level::kT1, repeats);
}

TEST(Repeat, EqualRunsAreClean) {
  Changing runner([](RunOutcome&, int, const std::vector<Tensor>&, int) {});
  EXPECT_EQ(record_of(runner, {.runs = 4, .reruns = 3}).verdict.kind, CaseVerdict::kClean);
  EXPECT_EQ(runner.runs, 6);  // another call, and one more run behind it
  EXPECT_EQ(runner.restarts, 0);
}

TEST(Repeat, EverySecondRunHasOtherBytesInUnusedStorageAndTheSameElsewhere) {
  std::vector<std::vector<Tensor>> seen;
  std::vector<int> fills;
  Changing runner([&](RunOutcome&, int, const std::vector<Tensor>& inputs, int fill) {
    seen.push_back(inputs);
    fills.push_back(fill);
  });
  record_of(runner, {.runs = 3});
  ASSERT_EQ(seen.size(), 5U);  // the fourth is another call of the same shapes
  EXPECT_EQ(fills, (std::vector<int>{0, 1, 0, 0, 0}));
  EXPECT_TRUE(seen[0][0].bytes == seen[2][0].bytes);
  const TensorView first = seen[0][0].view(), second = seen[1][0].view();
  ASSERT_EQ(first.layout->storage, 2 * (5 + 3));
  for (std::int64_t e = 0; e < first.layout->storage; ++e) EXPECT_EQ(first.code(e) == second.code(e), e % 8 < 5) << e;
}

TEST(Repeat, BitsThatDependOnUnusedBytesAreAFailureWithBothPatterns) {
  Changing runner([](RunOutcome& outcome, int, const std::vector<Tensor>&, int fill) {
    if (fill == 1) flip(outcome, 8 + 2);
  });
  const Record record = record_of(runner, {.runs = 2});
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kFinding);
  EXPECT_EQ(record.verdict.mode, "unused_data_poison");
  EXPECT_EQ(record.verdict.level, "invariant");
  EXPECT_EQ(record.verdict.evidence.find("the bits depend on bytes that no element uses: y[1,2] is 0x"), 0U)
      << record.verdict.evidence;
}

TEST(Repeat, BitsThatDependOnTheRunAreToldFromThose) {
  Changing runner([](RunOutcome& outcome, int run, const std::vector<Tensor>&, int) {
    if (run % 2 == 1) flip(outcome, 0), flip(outcome, 1);
  });
  const Record record = record_of(runner, {.runs = 2});
  EXPECT_EQ(record.verdict.evidence.find("the bits differ between runs on the same bytes: y[0,0] is 0x"), 0U)
      << record.verdict.evidence;
  EXPECT_NE(record.verdict.evidence.find("(2 elements differ)"), std::string::npos);
  EXPECT_EQ(record.verdict.mode, "race");
}

TEST(Repeat, BitsThatDependOnTheCallBeforeAreToldFromBoth) {
  // The first run is another call's successor, and the later ones follow themselves.
  Changing first([](RunOutcome& outcome, int run, const std::vector<Tensor>&, int) {
    if (run == 0) flip(outcome, 0);
  });
  // Only what follows the neighbour is wrong.
  std::vector<std::byte> own;
  bool other_before = false;
  Changing later([&](RunOutcome& outcome, int run, const std::vector<Tensor>& inputs, int fill) {
    if (run == 0) own = inputs[0].bytes;
    const bool other = fill == 0 && inputs[0].bytes != own;
    if (other_before && !other) flip(outcome, 0);
    other_before = other;
  });
  for (Changing* runner : {&first, &later}) {
    const Record record = record_of(*runner, {.runs = 2});
    EXPECT_EQ(record.verdict.mode, "history") << record.verdict.evidence;
    EXPECT_NE(record.verdict.evidence.find("the bits depend on the call before: y[0,0] is 0x"), std::string::npos)
        << record.verdict.evidence;
  }
}

TEST(Repeat, ARunThatEndsBadlyLaterIsTheOutcome) {
  Changing crash([](RunOutcome& outcome, int run, const std::vector<Tensor>&, int) {
    if (run == 1) outcome.status = RunStatus::kCrashed, outcome.reason = "signal 11 (SIGSEGV)", outcome.outputs.clear();
  });
  const Record record = record_of(crash, {.runs = 2});
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kCrashed);
  EXPECT_EQ(record.verdict.reason, "in run 2 of the same case: signal 11 (SIGSEGV)");
  Changing stray([](RunOutcome& outcome, int run, const std::vector<Tensor>&, int) {
    if (run == 1) outcome.broken = {"wrote outside output y"};
  });
  EXPECT_EQ(record_of(stray, {.runs = 2}).verdict.evidence, "the kernel wrote outside output y");
}

TEST(Repeat, OnlyAFailingCaseIsRerunInAFreshProcessAndOtherBitsAreARace) {
  const auto always = [](RunOutcome& outcome) { outcome.outputs[0].output().set_code(0, 0x7fc0); };  // NaN
  Changing same([&](RunOutcome& outcome, int, const std::vector<Tensor>&, int) { always(outcome); });
  const Record steady = record_of(same, {.runs = 1, .reruns = 3});
  EXPECT_EQ(steady.verdict.kind, CaseVerdict::kUnclassified);
  EXPECT_EQ(steady.verdict.evidence.find("a race"), std::string::npos) << steady.verdict.evidence;
  EXPECT_GE(same.runs, 1 + 3);  // and those by which the catalogue looks for a mode
  EXPECT_EQ(same.restarts, 1);
  int fresh = 0;
  Changing* running = nullptr;
  Changing other([&](RunOutcome& outcome, int, const std::vector<Tensor>&, int) {
    always(outcome);
    if (running->restarts > 0 && ++fresh == 3) outcome.outputs[0].output().set_code(0, 0x7fc1);
  });
  running = &other;
  const Record race = record_of(other, {.runs = 1, .reruns = 3});
  EXPECT_NE(race.verdict.evidence.find("a race, or memory nobody wrote: rerun 3 in a fresh process wrote other bits: "
                                       "y[0,0] is 0x7fc0 and 0x7fc1"),
            std::string::npos)
      << race.verdict.evidence;
}

TEST(Repeat, ABrokenInvariantIsNotRerun) {
  Changing stray(
      [](RunOutcome& outcome, int, const std::vector<Tensor>&, int) { outcome.broken = {"wrote outside output y"}; });
  EXPECT_EQ(record_of(stray, {.runs = 2, .reruns = 3}).verdict.evidence, "the kernel wrote outside output y");
  EXPECT_EQ(stray.runs, 1);
}

TEST(Repeat, ComparesElementsOfEveryOutputAndNotThePaddingBetweenThem) {
  const TensorLayout layout{"o", Format::kFp32, {2, 2}, {3, 1}, 1, 7};
  Tensor a{layout, {}};
  fill_canary(a);
  Tensor b = a;
  EXPECT_EQ(bit_difference({a, a}, {b, b}), std::nullopt);
  b.output().set_code(0, 1);
  b.output().set_code(3, 1);
  EXPECT_EQ(bit_difference({a, a}, {a, b}), std::nullopt);
  b.output().set_code(5, 1);
  EXPECT_EQ(bit_difference({a, a}, {a, b}), "o[1,1] is 0xfffafffa and 0x00000001");
}

}  // namespace
}  // namespace assay
