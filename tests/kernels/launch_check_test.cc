// What is refused before any kernel sees it: extents, strides and addresses that make no sense.
#include "kernels/launch_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/guard.h"
#include "kernels/invoke.h"

namespace assay {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
alignas(64) const std::byte kStorage[256]{};

std::string fault(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, std::int64_t offset,
                  std::int64_t storage, const std::byte* at = kStorage) {
  return launch_fault({"x", Format::kFp32, std::move(shape), std::move(strides), offset, storage}, at).value_or("");
}

TEST(LaunchCheck, TakesEveryLayoutWhoseElementsLieInTheStorage) {
  EXPECT_EQ(fault({2, 3}, {3, 1}, 0, 6), "");
  EXPECT_EQ(fault({2, 3}, {10, 2}, 5, 20), "");
  EXPECT_EQ(fault({2, 3}, {0, 1}, 0, 3), "") << "expanded";
  EXPECT_EQ(fault({3}, {-1}, 2, 3), "") << "backwards";
  EXPECT_EQ(fault({0, 3}, {3, 1}, 0, 0), "") << "nothing to read";
  EXPECT_EQ(fault({}, {}, 0, 1), "") << "a scalar";
}

TEST(LaunchCheck, RefusesTheOthersWithTheirNumbers) {
  EXPECT_EQ(fault({2, 3}, {3, 1}, 0, 5), "x: elements 0 to 5 of a storage of 5");
  EXPECT_EQ(fault({2, 3}, {3, 1}, 1, 6), "x: elements 1 to 6 of a storage of 6");
  EXPECT_EQ(fault({3}, {-1}, 1, 3), "x: elements -1 to 1 of a storage of 3");
  EXPECT_EQ(fault({2}, {1, 1}, 0, 6), "x: shape and strides differ in length");
  EXPECT_EQ(fault({-1}, {1}, 0, 6), "x: extent -1 of axis 0 is below 0");
  EXPECT_EQ(fault({kHuge, 2}, {0, 0}, 0, 6), "x: extent 2 of axis 1 passes 2^63 elements");
  EXPECT_EQ(fault({3, 3}, {kHuge / 2, kHuge / 2}, 0, 6).find("x: stride"), 0U);
  EXPECT_EQ(fault({2}, {1}, 0, 2, kStorage + 2), "x: its address is no multiple of 4 bytes");
}

TEST(LaunchCheck, KeepsAKernelFromBeingCalled) {
  static bool called = false;
  const Kernel kernel{.name = "test_launch",
                      .op = "test",
                      .summary = "",
                      .formats = {},
                      .unsupported = [](const Params&) -> std::optional<std::string> { return std::nullopt; },
                      .declared = [](const Params&) { return Arithmetic{}; },
                      .run = [](const Call&) { return called = true, RunFacts{}; }};
  const TensorLayout wrong{"x", Format::kFp32, {4}, {1}, 0, 3}, right{"x", Format::kFp32, {4}, {1}, 0, 4};
  const Params params;
  for (const TensorLayout* layout : {&wrong, &right}) {
    const TensorView view{layout, kStorage};
    called = false;
    const RunOutcome outcome = invoke(kernel, {params, std::span(&view, 1), {}});
    EXPECT_EQ(called, layout == &right);
    EXPECT_EQ(outcome.status, called ? RunStatus::kOk : RunStatus::kSkipped);
    EXPECT_EQ(outcome.reason, called ? "" : "not launched: x: elements 0 to 3 of a storage of 3");
  }
}

}  // namespace
}  // namespace assay
