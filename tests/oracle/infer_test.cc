// Inference of structure: kernels' own tiles, order, P format and splits are found from their outputs with the
// declaration blanked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases/materialize.h"
#include "kernels/runner.h"
#include "oracle/op.h"

namespace assay {
namespace {

struct Found {
  Arithmetic declared;
  std::optional<Inference> inference;
};

Found infer(const char* kernel, const std::string& line, bool blank = true) {
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case(line));
  const RunOutcome outcome = runner->run(kernel, problem.params, problem.inputs, problem.outputs);
  EXPECT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
  Arithmetic asked = outcome.declared;
  if (blank) {
    asked.tile_n = asked.splits = 0;
    asked.tile_order = TileOrder::kUnknown;
    asked.p_known = false;
    if (asked.max_policy != MaxPolicy::kOwnTile) asked.max_policy = MaxPolicy::kUnknown;
  }
  return {outcome.declared, op_named("attention").infer(problem, asked, outcome.outputs)};
}

TEST(Inference, FindsTheKernelsOwnStructure) {
  for (const auto& [kernel, line] : {std::pair{"fa2_bf16", "attention sq=16 skv=512 d=64"},
                                     {"fa2_fp16", "attention sq=16 skv=512 d=64 dtype=fp16"},
                                     {"fa2_bf16", "attention sq=16 skv=400 d=96"},
                                     {"split_bf16", "attention sq=16 skv=700 d=64"},
                                     {"split_fp16", "attention sq=16 skv=512 d=64 dtype=fp16"},
                                     {"paged_vllm_bf16", "attention sq=16 skv=500 d=64 kv=vllm"},
                                     {"fa1_bf16", "attention sq=16 skv=300 d=64"},
                                     {"fa2_bf16", "attention sq=300 skv=300 d=64 mask=causal rows=24"},
                                     {"fa3_e4m3", "attention sq=24 skv=512 d=64 dtype=e4m3"}}) {
    const auto [declared, found] = infer(kernel, line);
    ASSERT_TRUE(found.has_value()) << kernel << " " << line;
    EXPECT_EQ(found->arithmetic.tile_n, declared.tile_n) << kernel << " " << line << ": " << found->structure;
    EXPECT_EQ(found->arithmetic.tile_order, declared.tile_order) << kernel << ": " << found->structure;
    EXPECT_EQ(found->arithmetic.splits, declared.splits) << kernel << ": " << found->structure;
    EXPECT_EQ(found->arithmetic.p_format, declared.p_format) << kernel;
    EXPECT_TRUE(found->arithmetic.p_known);
    EXPECT_EQ(found->arithmetic.max_policy, declared.max_policy) << kernel;
    EXPECT_EQ(found->arithmetic.p_offset, declared.p_offset) << kernel;
    EXPECT_GT(found->bit_equal, 0.9) << kernel;
    EXPECT_LT(found->runner_up, found->bit_equal - 0.02) << kernel;
    EXPECT_LT(found->rounded_truth, 0.8) << kernel;
  }
}

TEST(Inference, SaysItInWords) {
  EXPECT_EQ(infer("fa2_bf16", "attention sq=16 skv=512 d=64").inference.value().structure,
            "tiles of 128 from last to first, P in bf16, 1 split");
  EXPECT_EQ(infer("split_bf16", "attention sq=16 skv=700 d=64").inference.value().structure,
            "tiles of 64 from last to first, P in bf16, 3 splits");
  EXPECT_EQ(infer("fa2_bf16", "attention sq=16 skv=60 d=64").inference.value().structure,
            "one maximum per row, P in bf16, 1 split");
}

TEST(Inference, SeesThatPIsNotRounded) {
  const auto [declared, found] = infer("naive_bf16", "attention sq=16 skv=512 d=64");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->structure, "P in fp32");
  EXPECT_EQ(found->arithmetic.p_format, Format::kFp32);
  EXPECT_EQ(found->bit_equal, found->rounded_truth);
  EXPECT_GT(found->bit_equal, 0.98);
}

TEST(Inference, SaysNothingWhereNothingStandsOut) {
  // One key: every structure gives V. Equal values: every structure gives that value.
  EXPECT_FALSE(infer("fa2_bf16", "attention sq=16 skv=1 d=64").inference.has_value());
  EXPECT_FALSE(infer("fa2_bf16", "attention sq=16 skv=512 d=64 v=constant(1)").inference.has_value());
  // Eight outputs are too few to tell.
  EXPECT_FALSE(infer("fa2_bf16", "attention sq=1 skv=512 d=64 dv=8").inference.has_value());
  // fp32 outputs show every rounding of the accumulation, so no replay is equal to them.
  EXPECT_FALSE(infer("fa2_bf16", "attention sq=16 skv=512 d=64 out=fp32").inference.has_value());
  // Another structure altogether: scores rounded to nothing the family knows.
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case("attention sq=16 skv=512 d=64"));
  const Problem other = materialize(parse_case("attention sq=16 skv=512 d=64 scale=0.13"));
  const RunOutcome outcome = runner->run("fa2_bf16", other.params, other.inputs, other.outputs);
  EXPECT_FALSE(op_named("attention").infer(problem, {}, outcome.outputs).has_value());
}

TEST(Inference, AsksOnlyForWhatIsNotDeclared) {
  EXPECT_FALSE(infer("fa2_bf16", "attention sq=16 skv=512 d=64", false).inference.has_value());
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case("attention sq=16 skv=512 d=64"));
  const RunOutcome outcome = runner->run("fa2_bf16", problem.params, problem.inputs, problem.outputs);
  Arithmetic asked = outcome.declared;
  asked.tile_order = TileOrder::kUnknown;
  const auto found = op_named("attention").infer(problem, asked, outcome.outputs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->arithmetic, outcome.declared);
}

}  // namespace
}  // namespace assay
