// T1 and T2 of attention: correct kernels stay inside, faults that T0 cannot see do not, and every part of the replay
// is right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cases/materialize.h"
#include "kernels/runner.h"
#include "oracle/accept.h"
#include "oracle/ops/attention/head_replay.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/ops/attention/row_sum.h"
#include "oracle/ops/attention/tile_walk.h"
#include "oracle/ops/attention/weight_replay.h"
#include "tests/oracle/problems.h"

namespace assay {
namespace {

struct Judged {
  double elements = 0, t0 = 0, t1 = 0, t2 = 0, open = 0;  ///< judged, rejected by level, without T1
  std::string first;                                      ///< rejection
};

/// Every number of one output against all levels of an evaluation.
Judged judge(const Evaluation& e, const std::vector<Tensor>& outputs, std::size_t k = 0) {
  Judged judged;
  const OutputTruth& truth = e.truth.outputs[k];
  const Format format = outputs[k].layout.format;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    if ((truth.classes[i] & kNumber) == 0) continue;
    const std::uint64_t code = load_code(outputs[k].bytes.data(), format, truth.element[i]);
    const ClassSet classes = truth.classes[i] | e.bound.outputs[k].also[i];
    ++judged.elements;
    const auto rejects = [&](double mid, double radius, double tau, const char* level) {
      if (accepts(acceptance(format, classes, mid, radius, tau), code)) return 0;
      if (judged.first.empty())
        judged.first =
            fmt::format("{} element {}: {} is not within {} of {}", level, i, decode(format, code), tau, mid);
      return 1;
    };
    judged.t0 += rejects(truth.mid[i], truth.radius[i], e.bound.outputs[k].tau[i], "T0");
    for (const Tier& tier : e.bound.tiers) {
      const OutputTier& o = tier.outputs[k];
      (tier.level == Level::kT1 ? judged.t1 : judged.t2) +=
          rejects(o.mid[i], 0, o.tau[i], tier.level == Level::kT1 ? "T1" : "T2");
      if (tier.level == Level::kT1 && std::isinf(o.tau[i])) ++judged.open;
    }
  }
  return judged;
}

RunOutcome run(Runner& runner, std::string_view kernel, const Problem& problem) {
  return runner.run(kernel, problem.params, problem.inputs, problem.outputs);
}

const Op& attention() { return op_named("attention"); }

TEST(Tiers, EveryCorrectKernelStaysInside) {
  const auto runner = in_process_runner();
  double elements = 0, open = 0;
  for (const char* line : {"hq=2 sq=4 skv=300 d=32",
                           "hq=2 sq=4 skv=300 d=32 out=fp32 lse=2",
                           "sq=8 skv=200 d=16 dv=32 mask=causal v=normal(0.1,5)@3",
                           "sq=4 skv=260 d=16 q=normal(9)@1",
                           "sq=2 skv=400 d=64 out=fp32",
                           "sq=3 skv=300 d=16 scale=1 q=probe@1 k=rising(3,64)@2",
                           "sq=3 skv=300 d=16 scale=1 q=probe@1 k=rising(0.01,64)@2 out=fp32",
                           "sq=3 skv=300 d=16 scale=1 q=probe@1 k=falling(2,32)@2",
                           "sq=3 skv=300 d=16 scale=1 q=probe@1 k=near_ties@2",
                           "sq=2 skv=300 d=16 scale=1 q=probe@1 k=logit_offset(-300,2)@2",
                           "sq=3 skv=200 d=32 q=constant(0.5) k=massive@2",
                           "sq=3 skv=200 d=64 q=twin_channels(64)@1 k=cancelling_channels(64)@2",
                           "sq=3 skv=200 d=16 v=subnormal@3",
                           "sq=3 skv=200 d=16 v=mixed_exponents@3 out=fp32",
                           "sq=3 skv=200 d=16 v=one_hot",
                           "sq=4 skv=150 d=16 softcap=5 q=normal(4)@1",
                           "sq=4 skv=150 d=16 alibi=distance out=fp32",
                           "sq=4 skv=150 d=16 mask=additive mask.data=bias(2)@4",
                           "sq=4 skv=150 d=16 sink=in_lse out=fp32",
                           "sq=4 skv=150 d=16 sink=out_of_lse sink.data=constant(9)",
                           "sq=4 skv=150 d=32 descale=head v_scale=uniform(0.01,2)@7",
                           "sq=6 skv=150 d=16 window=70,3",
                           "sq=6 skv=150 d=16 mask=bool",
                           "sq=5 skv=90 d=16 scale=-0.3",
                           "sq=3 skv=40 scale=0",
                           "b=2 sq=2 skv=150 d=16 kv=vllm page=16",
                           "b=2 sq=2 skv=150 d=16 kv=hnd page=64",
                           "sq=2 skv=1 d=16",
                           "sq=7 skv=5 mask=causal"}) {
    for (const KernelIdentity& kernel : runner->kernels()) {
      if (kernel.op != "attention") continue;
      const std::string full = fmt::format("attention {} dtype={}", line, kernel.dtypes[0]);
      const Problem problem = materialize(parse_case(full));
      const RunOutcome outcome = run(*runner, kernel.name, problem);
      if (outcome.status != RunStatus::kOk) continue;
      const Evaluation e = attention().evaluate(problem, outcome.declared, Level::kT2);
      for (std::size_t k = 0; k < outcome.outputs.size(); ++k) {
        const Judged judged = judge(e, outcome.outputs, k);
        ASSERT_EQ(judged.t0 + judged.t1 + judged.t2, 0) << kernel.name << " " << full << ": " << judged.first;
        if (e.bound.tiers.empty()) continue;
        elements += judged.elements, open += judged.open;
      }
    }
  }
  EXPECT_GT(elements, 3e4);
  EXPECT_LT(open, 0.15 * elements);
}

/// The share of outputs that a level rejects when the kernel ran on `faulty` in place of `line`.
Judged with_fault(const char* kernel, const std::string& line, const std::string& faulty) {
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case(line));
  const RunOutcome outcome = run(*runner, kernel, materialize(parse_case(faulty)));
  EXPECT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
  return judge(attention().evaluate(problem, outcome.declared, Level::kT2), outcome.outputs);
}

TEST(Tiers, SeeFaultsThatT0Cannot) {
  const std::string line = "attention sq=4 skv=4096 d=64";
  const Judged right = with_fault("fa2_bf16", line, line);
  EXPECT_EQ(right.t1 + right.t2, 0);
  const Judged scale3 = with_fault("fa2_bf16", line, line + " scale=0.125125"),
               scale4 = with_fault("fa2_bf16", line, line + " scale=0.1250125");
  EXPECT_EQ(scale3.t0 + scale4.t0, 0);
  EXPECT_GT(scale3.t1, 0.3 * scale3.elements);
  EXPECT_GT(scale4.t1, 0.1 * scale4.elements);
  const Judged dropped = with_fault("fa2_bf16", line, "attention sq=4 skv=4095 d=64");
  EXPECT_LT(dropped.t0, 0.01 * dropped.elements);
  EXPECT_GT(dropped.t1, 0.3 * dropped.elements);
  // 8 bits: the scores' error is as large as a step of P, and only T2, which knows them, sees one per mille.
  const std::string narrow = "attention sq=4 skv=1024 d=64 dtype=e4m3";
  const Judged scale8 = with_fault("fa3_e4m3", narrow, narrow + " scale=0.12525");
  EXPECT_EQ(scale8.t0, 0);
  EXPECT_GT(scale8.t2, 0.1 * scale8.elements);
  EXPECT_GT(scale8.t2, 3 * scale8.t1);
}

TEST(Tiers, NameAWrongDeclaration) {
  // Outputs of tiles from last to first do not fit a declaration of the other order, though T0 takes them.
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case("attention sq=8 skv=1024 d=64"));
  const RunOutcome outcome = run(*runner, "fa2_bf16", problem);
  Arithmetic wrong = outcome.declared;
  wrong.tile_order = TileOrder::kForward;
  const Judged judged = judge(attention().evaluate(problem, wrong, Level::kT1), outcome.outputs);
  EXPECT_EQ(judged.t0, 0);
  EXPECT_GT(judged.t1, 0.2 * judged.elements);
}

TEST(Tiers, ApplyOnlyWhereTheDeclarationSuffices) {
  const auto runner = in_process_runner();
  const Problem problem = materialize(parse_case("attention sq=2 skv=100 d=16"));
  const Arithmetic declared = run(*runner, "fa2_bf16", problem).declared;
  const AttentionParams p = attention_params(problem.params);
  EXPECT_TRUE(tier_applies(p, declared, Level::kT1));
  EXPECT_TRUE(tier_applies(p, declared, Level::kT2));
  EXPECT_FALSE(tier_applies(p, {}, Level::kT1));
  const auto without = [&](auto change, Level level) {
    Arithmetic a = declared;
    change(a);
    return tier_applies(p, a, level);
  };
  EXPECT_FALSE(without([](Arithmetic& a) { a.tile_n = 0; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.tile_order = TileOrder::kUnknown; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.max_policy = MaxPolicy::kUnknown; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.splits = 0; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.p_known = false; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.p_format = Format::kFp32; }, Level::kT1))
      << "nothing is rounded, nothing replayed";
  EXPECT_TRUE(without([](Arithmetic& a) { a.scale_form = ScaleForm::kUnknown; }, Level::kT1));
  EXPECT_FALSE(without([](Arithmetic& a) { a.scale_form = ScaleForm::kUnknown; }, Level::kT2));
  EXPECT_FALSE(without([](Arithmetic& a) { a.qk = Accumulate::kFp32; }, Level::kT2));
  EXPECT_EQ(attention().evaluate(problem, declared, Level::kT0).bound.tiers.size(), 0U);
  EXPECT_EQ(attention().evaluate(problem, declared, Level::kT2).bound.tiers.size(), 2U);
}

TEST(Tiers, AreOpenForRowsThatAreEmptyOrOutOfRange) {
  const auto runner = in_process_runner();
  for (const char* line : {"attention sq=2 skv=1 mask=causal empty=mean d=16",
                           "attention sq=1 skv=40 d=16 scale=1 q=constant(1e19) k=constant(1e19)"}) {
    const Problem problem = materialize(parse_case(line));
    const Evaluation e = attention().evaluate(problem, run(*runner, "fa2_bf16", problem).declared, Level::kT1);
    EXPECT_TRUE(std::isinf(e.bound.tiers[0].outputs[0].tau[0])) << line;
  }
}

TEST(PositiveRounder, RoundsAsFormatsDo) {
  Dice dice(5);
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kE4m3, Format::kE5m2}) {
    const PositiveRounder round(format);
    const FormatInfo& f = info(format);
    for (int i = 0; i < 20000; ++i) {
      const double value = std::ldexp(
          dice.real(1, 2), static_cast<int>(dice.between(f.min_exponent - f.fraction_bits - 3, f.max_exponent - 1)));
      ASSERT_EQ(round(value), round_to(format, value)) << f.name << " " << value;
    }
    for (std::uint64_t code = 0; code < 120; ++code) {
      const double low = decode(format, code), tie = low / 2 + decode(format, code + 1) / 2;
      ASSERT_EQ(round(tie), round_to(format, tie)) << f.name << " halfway above code " << code;
      ASSERT_EQ(round(low), low);
    }
    EXPECT_EQ(round(0), 0);
  }
}

TEST(TileWalk, FollowsTheMaximum) {
  // Tiles {0, 1}, {2, 3}, {4, 5}; maxima at depths 3, 1, 0 forward.
  const std::vector<std::int32_t> keys = {0, 1, 2, 3, 4, 5};
  const std::vector<double> depth = {5, 3, 1, 4, 0, 2}, error(6, 1e-6);
  Arithmetic a;
  a.tile_n = 2, a.splits = 1, a.tile_order = TileOrder::kForward, a.max_policy = MaxPolicy::kEveryTile;
  const WalkInput row{keys, depth, error, 6};
  const SplitWalk forward = walk_tiles(row, a, 1e-7).value()[0];
  ASSERT_EQ(forward.steps.size(), 3U);
  EXPECT_EQ(forward.steps[0].depth, 3);
  EXPECT_EQ(forward.steps[1].depth, 1);
  EXPECT_EQ(forward.steps[2].depth, 0);
  EXPECT_FALSE(forward.steps[0].event);
  EXPECT_TRUE(forward.steps[1].event && forward.steps[2].event);
  EXPECT_NEAR(forward.steps[0].weight, std::exp(-3), 1e-15);
  EXPECT_NEAR(forward.steps[0].weight_error, 2e-6 + 4 * 0x1p-24 * 3 + 2e-7, 1e-11);
  EXPECT_EQ(forward.steps[2].weight_error, 0);

  a.tile_order = TileOrder::kBackward;
  const SplitWalk backward = walk_tiles(row, a, 1e-7).value()[0];
  for (const TileStep& step : backward.steps) EXPECT_TRUE(step.depth == 0 && !step.event && step.weight_error == 0);
  EXPECT_EQ(backward.steps[0].begin, 4U);

  a.tile_order = TileOrder::kForward, a.max_policy = MaxPolicy::kOwnTile;
  const SplitWalk own = walk_tiles(row, a, 1e-7).value()[0];
  EXPECT_EQ(own.steps[1].depth, 1);
  EXPECT_NEAR(own.steps[2].weight_error, 2e-6 + 1e-7, 1e-11) << "beta is an exponential too";

  a.max_policy = MaxPolicy::kLazy, a.lazy_threshold = 4;  // 2^4 is a rise of 2.77
  const SplitWalk lazy = walk_tiles(row, a, 1e-7).value()[0];
  EXPECT_EQ(lazy.steps[1].depth, 3) << "a rise of 2 is not worth it";
  EXPECT_EQ(lazy.steps[2].depth, 0);
  const std::vector<double> close = {5, 4 * std::log(2.0), 4, 4, 0, 0};
  EXPECT_FALSE(walk_tiles({keys, close, error, 6}, a, 1e-7).has_value())
      << "a rise of exactly 2^4 is too close to call";

  a.max_policy = MaxPolicy::kEveryTile, a.splits = 2;
  const auto splits = walk_tiles(row, a, 1e-7).value();
  ASSERT_EQ(splits.size(), 2U);  // 3 tiles: 2 and 1
  EXPECT_EQ(splits[0].steps.size(), 2U);
  EXPECT_EQ(splits[1].depth, 0);
  a.split_at = 3;  // positions {0, 1}, {2} and, counted from the cut, {3, 4}, {5}
  const auto cut = walk_tiles(row, a, 1e-7).value();
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_TRUE(cut[0].steps.size() == 2 && cut[1].steps.size() == 2);
  EXPECT_EQ(cut[0].steps[1].end, 3U);
  EXPECT_TRUE(cut[1].steps[0].begin == 3 && cut[1].steps[0].end == 5);
  EXPECT_TRUE(cut[1].steps[0].start == 3 && cut[1].steps[1].start == 5);
  EXPECT_TRUE(cut[0].depth == 1 && cut[1].depth == 0);
  a.split_at = 0;
  // Two tiles whose maxima are closer than their errors: either may hold it.
  const std::vector<double> tied = {5, 0, 1e-7, 4, 0.5, 2};
  EXPECT_TRUE(walk_tiles({keys, tied, error, 6}, a, 1e-7).value()[0].steps[1].event);
}

TEST(RowSum, BoundsAFloatSumInItsTree) {
  Dice dice(9);
  for (const RowSumTree tree : {RowSumTree::kSequential, RowSumTree::kQuad}) {
    Arithmetic a;
    a.tile_n = 64, a.splits = 1, a.tile_order = TileOrder::kForward, a.max_policy = MaxPolicy::kGlobal,
    a.row_sum_tree = tree;
    double worst = 0;
    for (int trial = 0; trial < 200; ++trial) {
      const auto n = static_cast<std::size_t>(dice.between(1, 600));
      std::vector<std::int32_t> keys;
      std::vector<double> depth, error(n, 0.0), p;
      std::array<float, 4> lanes{};
      double exact = 0;
      for (std::size_t j = 0; j < n; ++j) {
        keys.push_back(static_cast<std::int32_t>(j)), depth.push_back(j == 0 ? 0 : 1);
        p.push_back(static_cast<double>(static_cast<float>(dice.real(0.9, 1.0))));  // equal signs of error are likely
        lanes[tree == RowSumTree::kQuad ? j % 8 / 2 : 0] += static_cast<float>(p[j]);
        exact += p[j];
      }
      const double got = static_cast<double>((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
      const double bound =
          row_sum_error(walk_tiles({keys, depth, error, static_cast<std::int64_t>(n)}, a, 0).value()[0], keys, p, a);
      ASSERT_LE(std::abs(got / exact - 1), bound);
      ASSERT_LE(bound, gamma32(static_cast<double>(n) + 2));
      worst = std::max(worst, std::abs(got / exact - 1) / bound);
    }
    EXPECT_GT(worst, 0.05);
  }
}

TEST(ScoreErrors, BoundTheEmulatedChain) {
  for (const char* line : {"attention sq=6 skv=600 d=128", "attention sq=6 skv=300 d=72 dtype=fp16",
                           "attention sq=6 skv=300 d=128 dtype=e4m3", "attention sq=6 skv=300 d=64 dtype=e5m2",
                           "attention sq=6 skv=300 d=64 q=same_sign@1 k=same_sign@2",
                           "attention sq=6 skv=300 d=64 q=twin_channels(64)@1 k=cancelling_channels(64)@2",
                           "attention sq=6 skv=300 d=64 q=mixed_exponents@1 k=mixed_exponents@2",
                           "attention sq=6 skv=300 d=64 dtype=fp16 q=subnormal@1",
                           "attention sq=6 skv=300 d=64 dtype=e4m3 q=subnormal@1 k=normal(0.02)@2"}) {
    const Problem raw = materialize(parse_case(line));
    const AttentionProblem problem(raw);
    for (const Accumulate kind : {Accumulate::kBlockAmpere, Accumulate::kBlockHopper}) {
      const MmaModel& model = block_model(kind, problem.params().input);
      HeadReplay head;
      double worst = 0, before = 0;
      std::vector<std::size_t> rows(problem.rows().size());
      for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = r;
      analyse_rows(problem, rows, [&](std::size_t, const RowAnalysis& row) {
        head.load(problem, row, true);
        std::vector<double> error, score;
        head.score_errors(problem, row, model, error);
        head.emulate_scores(problem, row, model, score);
        const AccumulationError any =
            accumulation_error(kind, problem.params().input, static_cast<double>(problem.params().dim_qk),
                               [&](int k) { return static_cast<double>((problem.params().dim_qk + k - 1) / k); });
        for (std::size_t j = 0; j < row.keys.size(); ++j) {
          ASSERT_LE(std::abs(score[j] - row.score[j]), error[j]) << line << " key " << row.keys[j];
          worst = std::max(worst, std::abs(score[j] - row.score[j]) / (error[j] + 1e-300));
          before = std::max(before, error[j] / (any.relative * row.magnitude[j]));
        }
      });
      // Where products are exact or cancel the bound has room; elsewhere truncation uses a good part of it.
      const std::string_view text(line);
      if (text.find("subnormal") == text.npos && text.find("cancelling") == text.npos) {
        EXPECT_GT(worst, 0.05) << line;
      }
      EXPECT_LT(before, 1) << line << ": no tighter than any order";
    }
  }
}

}  // namespace
}  // namespace assay
