// DeviceCall in a worker: sound runs, and every way a device kernel can go wrong as one outcome; without a device, a
// skip.
#include "kernels/device/device_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "fuzz/repeat.h"
#include "kernels/worker.h"
#include "tests/device/probe.cuh"

namespace assay {
namespace {

using Findings = std::vector<std::string>;

const std::map<std::string, Misdeed> kMisdeeds{
    {"nothing", Misdeed::kNone},
    {"behind", Misdeed::kBehindOutput},
    {"before", Misdeed::kBeforeOutput},
    {"behind_workspace", Misdeed::kBehindWorkspace},
    {"padding", Misdeed::kPadding},
    {"input", Misdeed::kInput},
    {"workspace_read", Misdeed::kWorkspaceRead},
    {"wild", Misdeed::kWildWrite},
    {"trap", Misdeed::kTrap},
    {"hang", Misdeed::kHang},
    {"launch", Misdeed::kTooManyThreads},
    {"count", Misdeed::kRunCount},
    {"memory", Misdeed::kNone},
};

RunFacts run(const Call& host) {
  const std::string what = *host.params.find("do");
  DeviceCall call(host);
  const DeviceInput x = call.input("x");
  const DeviceOutput y = call.output("y");
  Probe probe{x.data<std::uint16_t>(), y.data<std::uint16_t>(), nullptr, y.extent(0), y.stride(0), 3,
              y.layout->storage};
  probe.workspace = call.workspace<std::uint16_t>("partial", probe.workspace_count);
  if (what == "memory") call.workspace<double>("huge", std::int64_t{1} << 45);
  launch_probe(probe, kMisdeeds.at(what), call.stream());
  call.launched("probe_kernel");
  return call.finish("64 threads");
}

const RegisterKernel kProbe{{.name = "test_device_add",
                             .op = "add",
                             .summary = "adds one on the device",
                             .formats = {Format::kBf16},
                             .device = true,
                             .unsupported = [](const Params&) { return std::optional<std::string>(); },
                             .declared = [](const Params&) { return Arithmetic{}; },
                             .run = run}};

constexpr std::int64_t kCount = 100;

TensorLayout spread(std::string role) { return {std::move(role), Format::kBf16, {kCount}, {2}, 0, kCount * 2}; }

Problem problem_of(const std::string& what) {
  Tensor x{spread("x"), {}};
  fill_canary(x);
  for (std::int64_t e = 0; e < kCount; ++e) x.output().set_code(2 * e, static_cast<std::uint64_t>(e));
  Problem problem{{}, {x}, {spread("y")}};
  problem.params.set("do", what);
  return problem;
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const DeviceInfo device = runner_->device(); !device.absent.empty()) GTEST_SKIP() << device.absent;
  }
  RunOutcome run(const std::string& what) const {
    const Problem problem = problem_of(what);
    return runner_->run("test_device_add", problem.params, problem.inputs, problem.outputs);
  }
  void expect_sound() const {
    const RunOutcome outcome = run("nothing");
    ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
    EXPECT_EQ(outcome.broken, Findings{});
    EXPECT_EQ(outcome.facts.variant, "64 threads");
    EXPECT_EQ(outcome.facts.device, runner_->device().text());
    for (std::int64_t e = 0; e < kCount; ++e) {
      ASSERT_EQ(outcome.outputs[0].view().code(2 * e), static_cast<std::uint64_t>(e + 1));
      ASSERT_EQ(outcome.outputs[0].view().code(2 * e + 1), canary_code(Format::kBf16));
    }
  }
  void expect_broken(const std::string& what, const std::string& finding) const {
    const RunOutcome outcome = run(what);
    EXPECT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
    EXPECT_EQ(outcome.broken, Findings{finding});
    expect_sound();
  }
  void expect_crash(const std::string& what, const std::string& words, bool spoiled) const {
    const RunOutcome outcome = run(what);
    EXPECT_EQ(outcome.status, RunStatus::kCrashed);
    EXPECT_NE(outcome.reason.find(words), std::string::npos) << outcome.reason;
    RecordProperty(what, outcome.reason);
    EXPECT_EQ(outcome.spoiled, spoiled);
    expect_sound();
  }

  std::unique_ptr<Runner> runner_ = worker_runner({{"/proc/self/exe", "serve"}, std::chrono::seconds(20)});
};

TEST(WithoutADevice, EveryRunIsSkippedWithTheReason) {
  const auto runner = worker_runner({{"/proc/self/exe", "serve"}});
  const DeviceInfo device = runner->device();
  if (device.absent.empty()) GTEST_SKIP() << "here is " << device.text();
  const Problem problem = problem_of("nothing");
  const RunOutcome outcome = runner->run("test_device_add", problem.params, problem.inputs, problem.outputs);
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_EQ(outcome.reason.find("no CUDA device (cudaError"), 0U) << outcome.reason;
  EXPECT_EQ(outcome.broken, Findings{});
  EXPECT_FALSE(outcome.spoiled);
}

TEST_F(OnDevice, ASoundKernelGivesItsOutputs) {
  expect_sound();
  expect_sound();
}

TEST_F(OnDevice, AWriteOutsideATensorNamesIt) {
  expect_broken("behind", "wrote outside output y on the device: byte 0 behind its 400 bytes");
  expect_broken("before", "wrote outside output y on the device: byte 2 before its 400 bytes");
  expect_broken("behind_workspace", "wrote outside workspace partial on the device: byte 0 behind its 6 bytes");
  expect_broken("padding", "wrote outside output y");
}

TEST_F(OnDevice, AChangedInputIsNamed) { expect_broken("input", "changed input x on the device: byte 4 of 400"); }

TEST_F(OnDevice, ALostContextEndsTheProcessAndTheNextRunStartsAFreshOne) {
  expect_crash("wild", "cudaErrorIllegalAddress", true);
  expect_crash("trap", "cudaErrorLaunchFailure", true);
}

TEST_F(OnDevice, ARefusedLaunchIsACrashOfThatRunOnly) {
  expect_crash("launch", "launch of probe_kernel: cudaErrorInvalid", false);
}

TEST_F(OnDevice, AHangIsOneAndTheNextRunGoesOn) {
  const auto runner = worker_runner({{"/proc/self/exe", "serve"}, std::chrono::seconds(3)});
  const Problem problem = problem_of("hang");
  EXPECT_EQ(runner->run("test_device_add", problem.params, problem.inputs, problem.outputs).status, RunStatus::kHung);
  expect_sound();
}

TEST_F(OnDevice, MemoryThatIsNotThereSkipsTheRun) {
  const RunOutcome outcome = run("memory");
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_EQ(outcome.reason, "out of device memory: 281474976711168 bytes for workspace huge");
  expect_sound();
}

TEST_F(OnDevice, AnUnsetWorkspaceShowsInTheBitsOfTheSecondRun) {
  const Problem problem = problem_of("workspace_read");
  const RepeatedRun run = run_repeatedly(*runner_, "test_device_add", problem, problem, 2);
  EXPECT_EQ(run.difference, "the bits depend on bytes that no element uses: y[0] is 0xffff and 0x7b7b");
}

TEST_F(OnDevice, BitsThatDependOnTheRunShowInRepeatedRuns) {
  const Problem problem = problem_of("count");
  const RepeatedRun run = run_repeatedly(*runner_, "test_device_add", problem, problem, 2);
  EXPECT_EQ(run.difference, "the bits differ between runs on the same bytes: y[0] is 0x0001 and 0x0002");
}

TEST_F(OnDevice, BareMemoryIsNeitherGuardedNorBroughtBack) {
  WorkerOptions options{{"/proc/self/exe", "serve"}};
  options.bare = true;
  const auto runner = worker_runner(options);
  for (const char* what : {"nothing", "input"}) {
    const Problem problem = problem_of(what);
    const RunOutcome outcome = runner->run("test_device_add", problem.params, problem.inputs, problem.outputs);
    ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
    EXPECT_EQ(outcome.broken, Findings{});
    EXPECT_EQ(outcome.outputs[0].view().code(0), canary_code(Format::kBf16));
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "serve") == 0) return assay::serve_worker(0, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
