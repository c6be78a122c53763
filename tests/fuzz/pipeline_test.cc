// Every outcome of a run becomes the right verdict, and the record holds what a reader needs.
#include "fuzz/pipeline.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "oracle/error.h"

namespace assay {
namespace {

/// Runs a correct kernel, then lets the test spoil the outcome.
class SpoiledRunner final : public Runner {
 public:
  explicit SpoiledRunner(std::function<void(RunOutcome&)> spoil) : sound_(in_process_runner()), spoil_(std::move(spoil)) {}
  std::vector<KernelIdentity> kernels() override { return sound_->kernels(); }
  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    RunOutcome outcome = sound_->run(kernel, params, inputs, outputs);
    spoil_(outcome);
    return outcome;
  }

 private:
  std::unique_ptr<Runner> sound_;
  std::function<void(RunOutcome&)> spoil_;
};

Record spoiled(const std::string& line, std::function<void(RunOutcome&)> spoil) {
  SpoiledRunner runner(std::move(spoil));
  return run_case(parse_case(line), "fa2_bf16", runner);
}

constexpr const char* kLine = "attention hq=2 sq=5 skv=70 mask=causal";

void set_element(RunOutcome& outcome, std::size_t output, std::int64_t element, std::uint64_t code) {
  Tensor& tensor = outcome.outputs[output];
  store_code(tensor.bytes.data(), tensor.layout.format, element, code);
}

TEST(Pipeline, ASoundRunIsCleanAndItsRecordIsComplete) {
  const Record record = spoiled(kLine, [](RunOutcome&) {});
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kClean);
  EXPECT_EQ(record.kernel, "fa2_bf16");
  EXPECT_EQ(parse_case(record.case_line), parse_case(kLine));
  EXPECT_NE(record.declared, Arithmetic{});
  EXPECT_FALSE(record.variant.empty());
  EXPECT_FALSE(record.assumptions.empty());
  EXPECT_FALSE(record.known_wrong.empty());
  EXPECT_EQ(record.measurement.outputs.size(), 2U);
  EXPECT_EQ(record.measurement.rows, 10);
  EXPECT_TRUE(record.sampled_rows.empty());
}

TEST(Pipeline, ACutBetweenTwoSplitsIsPartOfTheDeclaration) {
  const Case c = parse_case("attention hq=2 sq=5 skv=600 prefix=70");
  SpoiledRunner declared([](RunOutcome&) {}), elsewhere([](RunOutcome& outcome) { outcome.declared.split_at = 0; });
  const Record record = run_case(c, "cascade_bf16", declared, Level::kT2);
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kClean) << record.verdict.evidence;
  EXPECT_EQ(record.bound_level, "T2");
  EXPECT_EQ(run_case(c, "cascade_bf16", elsewhere).verdict.level, "fail_t1");
}

TEST(Pipeline, RunsWithoutOutputsKeepTheirReason) {
  for (const auto& [status, kind] : {std::pair{RunStatus::kSkipped, CaseVerdict::kSkipped},
                                     std::pair{RunStatus::kCrashed, CaseVerdict::kCrashed},
                                     std::pair{RunStatus::kHung, CaseVerdict::kHung}}) {
    const Record record = spoiled(kLine, [s = status](RunOutcome& run) { run.status = s, run.reason = "because", run.outputs.clear(); });
    EXPECT_EQ(record.verdict.kind, kind);
    EXPECT_EQ(record.verdict.reason, "because");
  }
}

TEST(Pipeline, WritingWhereOneMustNotIsAFailureEvenIfTheNumbersAreRight) {
  const Record record =
      spoiled(kLine, [](RunOutcome& run) { run.broken = {"changed input q", "wrote outside output o"}; });
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kUnclassified);
  EXPECT_EQ(record.verdict.level, "invariant");
  EXPECT_EQ(record.verdict.evidence, "the kernel changed input q; wrote outside output o");
}

TEST(Pipeline, OneWrongElementOfEitherOutputIsAFailure) {
  EXPECT_EQ(spoiled(kLine, [](RunOutcome& run) { set_element(run, 0, 77, 0x7fc0); }).verdict.kind, CaseVerdict::kUnclassified);
  EXPECT_EQ(spoiled(kLine, [](RunOutcome& run) { set_element(run, 0, 77, encode(Format::kBf16, 5)); }).verdict.kind,
            CaseVerdict::kUnclassified);
  const Record lse = spoiled(kLine, [](RunOutcome& run) { set_element(run, 1, 3, encode(Format::kFp32, 5)); });
  EXPECT_EQ(lse.verdict.kind, CaseVerdict::kUnclassified);
  EXPECT_EQ(lse.measurement.outputs[1].rejected, 1);
  EXPECT_EQ(lse.measurement.outputs[1].worst.element, 3);
  EXPECT_TRUE(lse.measurement.outputs[1].worst.rejected);
  EXPECT_EQ(lse.measurement.outputs[1].rows[3].rejected, 1);
}

TEST(Pipeline, AnUnwrittenElementIsAFailureEvenWhereNanIsRight) {
  const char* nan_rows = "attention sq=6 skv=4 mask=causal empty=nan";
  EXPECT_EQ(spoiled(nan_rows, [](RunOutcome&) {}).verdict.kind, CaseVerdict::kClean);
  const Record record = spoiled(nan_rows, [](RunOutcome& run) { set_element(run, 0, 5, canary_code(Format::kBf16)); });
  EXPECT_EQ(record.verdict.mode, "unwritten_output");
  EXPECT_EQ(record.measurement.outputs[0].canary, 1);
}

TEST(Pipeline, WholeNanRowsWithoutReasonStayUnclassified) {
  // All rows have keys in every tile: M01's signature does not fit.
  const Record record = spoiled("attention sq=2 skv=16 d=16", [](RunOutcome& run) {
    for (std::int64_t e = 0; e < 16; ++e) set_element(run, 0, e, 0x7fc0);
    set_element(run, 1, 0, 0x7fc00000);
  });
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kUnclassified);
}

TEST(Pipeline, ZeroRowsWithOrdinaryLogitsAreNoFalseMaximum) {
  const Record record = spoiled("attention sq=3 skv=40 d=16 q=normal(4)@1", [](RunOutcome& run) {
    for (std::int64_t e = 0; e < 16; ++e) set_element(run, 0, e, 0);
  });
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kUnclassified) << record.verdict.mode;
}

TEST(Pipeline, SampledRowsAreNamedInTheRecord) {
  const Record record = spoiled("attention hq=2 sq=50 skv=70 rows=5 rows_seed=3", [](RunOutcome&) {});
  EXPECT_EQ(record.verdict.kind, CaseVerdict::kClean);
  ASSERT_EQ(record.sampled_rows.size(), 5U);
  EXPECT_EQ(record.sampled_rows.front(), (std::array<std::int32_t, 3>{0, 0, 0}));
  EXPECT_EQ(record.sampled_rows.back(), (std::array<std::int32_t, 3>{0, 1, 49}));
}

TEST(Pipeline, OnlyABadCaseThrows) {
  const auto runner = in_process_runner();
  EXPECT_THROW(run_case(parse_case("attention sq=2 set=q[9,9,9,9]:1"), "fa2_bf16", *runner), InputError);
  EXPECT_THROW(run_case(parse_case(kLine), "no_such_kernel", *runner), InputError);
}

TEST(Pipeline, DecidesASinkAloneBehindAnInfiniteFactor) {
  // Found by fuzzing: all logits are -inf by a factor, and the LSE is the sink's logit.
  const Case c = parse_case("attention skv=2 d=16 dtype=fp32 sink=in_lse descale=head q=probe k=logit_offset sink.data=constant(40) set=k_scale[0,0]:inf");
  const Record record = run_case(c, "naive_fp32", *in_process_runner());
  EXPECT_EQ(verdict_name(record.verdict.kind), "vacuous") << record.verdict.reason;
}

TEST(Pipeline, BoundsTheLseOfRowsKnownByTheirSumsBesideAFarSink) {
  // Found by fuzzing: the bound went through keys that such a row does not list. V is 0, so the zero output passes.
  const Case c = parse_case("attention d=16 sink=out_of_lse q=constant v=constant sink.data=constant(-1e30)");
  const Record record = run_case(c, "naive_bf16", *in_process_runner());
  EXPECT_EQ(verdict_name(record.verdict.kind), "vacuous") << record.verdict.evidence << record.verdict.reason;
}

}  // namespace
}  // namespace assay
