// The in-process runner: canary, guard zones, untouched inputs, and what a kernel throws.
#include "kernels/runner.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/guard.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::optional<std::string> supported(const Params& params) {
  if (params.find("refuse")) return "does not like refuse";
  return std::nullopt;
}
Arithmetic declared(const Params&) { return {.tile_n = 7, .splits = 3}; }

/// Copies x to y, then does what `do` asks for.
RunFacts run(const Call& call) {
  const TensorView x = find_view(call.inputs, "x");
  const OutputView y = find_view(call.outputs, "y");
  for (std::int64_t i = 0; i < y.extent(0); ++i)
    for (std::int64_t j = 0; j < y.extent(1); ++j) y.set_code(y.element(i, j), x.code(x.element(i, j)));
  const std::string* what = call.params.find("do");
  if (what == nullptr) return {"copies"};
  if (*what == "throw") throw std::runtime_error("it hurts");
  if (*what == "throw_number") throw 7;
  if (*what == "input") const_cast<std::byte*>(x.storage)[0] ^= std::byte{1};
  if (*what == "padding") y.set_code(4, 0);
  if (*what == "before") y.set_code(-1, 0);
  if (*what == "far_before") y.set_code(-16, 0);
  if (*what == "behind") y.set_code(y.layout->storage, 0);
  if (*what == "far_behind") y.set_code(y.layout->storage + 15, 0);
  return {"copies and then some"};
}

const RegisterKernel kCopy{{.name = "test_copy",
                            .op = "copy",
                            .summary = "copies",
                            .formats = {Format::kFp32},
                            .unsupported = supported,
                            .declared = declared,
                            .run = run}};

TensorLayout layout(std::string role) { return {std::move(role), Format::kFp32, {3, 4}, {5, 1}, 0, 15}; }

RunOutcome outcome_of(std::string key, std::string value) {
  Params params;
  params.set(key, std::move(value));
  Tensor x{layout("x"), {}};
  fill_canary(x);
  for (std::int64_t e = 0; e < 15; ++e) x.output().set_code(e, static_cast<std::uint64_t>(e));
  return in_process_runner()->run("test_copy", params, {x}, {layout("y")});
}

using Findings = std::vector<std::string>;

TEST(InProcessRunner, GivesOutputsFactsAndDeclaration) {
  const RunOutcome outcome = outcome_of("do", "nothing");
  EXPECT_EQ(outcome.status, RunStatus::kOk);
  EXPECT_EQ(outcome.facts.variant, "copies and then some");
  EXPECT_EQ(outcome.declared, (Arithmetic{.tile_n = 7, .splits = 3}));
  EXPECT_EQ(outcome.broken, Findings{});
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outputs[0].layout, layout("y"));
  for (std::int64_t e = 0; e < 15; ++e)
    EXPECT_EQ(outcome.outputs[0].view().code(e),
              e % 5 == 4 ? canary_code(Format::kFp32) : static_cast<std::uint64_t>(e));
}

TEST(InProcessRunner, SeesAWriteOutsideTheOutput) {
  for (const char* where : {"padding", "before", "far_before", "behind", "far_behind"}) {
    const RunOutcome outcome = outcome_of("do", where);
    EXPECT_EQ(outcome.broken, Findings{"wrote outside output y"}) << where;
    EXPECT_EQ(outcome.status, RunStatus::kOk) << where;
  }
}

TEST(InProcessRunner, SeesAWriteToAnInputAndKeepsTheOriginal) {
  Tensor x{layout("x"), {}};
  fill_canary(x);
  const std::vector<Tensor> inputs{x};
  Params params;
  params.set("do", "input");
  const RunOutcome outcome = in_process_runner()->run("test_copy", params, inputs, {layout("y")});
  EXPECT_EQ(outcome.broken, Findings{"changed input x"});
  EXPECT_EQ(inputs[0].bytes, x.bytes);
}

TEST(InProcessRunner, TurnsAnExceptionIntoACrash) {
  EXPECT_EQ(outcome_of("do", "throw").status, RunStatus::kCrashed);
  EXPECT_EQ(outcome_of("do", "throw").reason, "exception: it hurts");
  EXPECT_EQ(outcome_of("do", "throw_number").status, RunStatus::kCrashed);
}

TEST(InProcessRunner, SkipsWhatTheKernelRefuses) {
  const RunOutcome outcome = outcome_of("refuse", "1");
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_EQ(outcome.reason, "does not like refuse");
}

TEST(InProcessRunner, KnowsItsKernelsByName) {
  bool found = false;
  for (const KernelIdentity& kernel : in_process_runner()->kernels()) found = found || kernel.name == "test_copy";
  EXPECT_TRUE(found);
  EXPECT_THROW(in_process_runner()->run("no_such", {}, {}, {}), InputError);
}

TEST(Canary, IsANanInEveryFloatFormatThatHasNoOtherCode) {
  for (const Format format :
       {Format::kFp64, Format::kFp32, Format::kFp16, Format::kBf16, Format::kE4m3, Format::kE5m2}) {
    Tensor t{{"x", format, {5}, {1}, 0, 5}, {}};
    fill_canary(t);
    for (std::int64_t e = 0; e < 5; ++e) {
      EXPECT_TRUE(is_nan(format, t.view().code(e)));
      EXPECT_EQ(t.view().code(e), canary_code(format));
    }
    if (bytes_per_element(format) == 1) continue;  // e4m3 has only one NaN
    EXPECT_NE(canary_code(format), encode(format, std::numeric_limits<double>::quiet_NaN()));
  }
}

TEST(Guard, CountsOnlyElementsThatNoIndexReachesAsPadding) {
  // Transposed, offset, with gaps: elements 2, 4, 6, 9, 11, 13 of 16 are addressed.
  const TensorLayout gaps{"x", Format::kBf16, {3, 2}, {2, 7}, 2, 16};
  std::vector<std::byte> zone(static_cast<std::size_t>(zone_bytes(gaps)));
  for (std::int64_t e = 0; e < 16; ++e) {
    fill_zone(zone, gaps);
    store_code(zone.data() + kGuardBytes, Format::kBf16, e, 1);
    const bool addressed = e == 2 || e == 4 || e == 6 || e == 9 || e == 11 || e == 13;
    EXPECT_EQ(padding_intact(zone, gaps), addressed) << e;
    EXPECT_TRUE(guards_intact(zone, gaps));
  }
  const TensorLayout nothing{"x", Format::kBf16, {0, 2}, {2, 1}, 0, 4};
  fill_zone(zone, nothing);
  EXPECT_TRUE(padding_intact(zone, nothing));
}

}  // namespace
}  // namespace assay
