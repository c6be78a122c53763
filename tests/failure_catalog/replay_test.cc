// The replay of a kernel's own arithmetic gives the bits of correct kernels nearly everywhere, in o and in the LSE.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/materialize.h"
#include "kernels/kernel.h"
#include "kernels/runner.h"
#include "oracle/ops/attention/kernel_replay.h"
#include "oracle/ops/merge/row_replay.h"
#include "oracle/ops/softmax/row_replay.h"

namespace assay {
namespace {

struct Shares {
  double o = 0, lse = 0;  ///< equal codes; within 1e-5 of |lse| and 1e-5
};

Shares equal_shares(const std::string& kernel, const std::string& line) {
  const Problem raw = materialize(parse_case(line));
  const RunOutcome outcome = in_process_runner()->run(kernel, raw.params, raw.inputs, raw.outputs);
  EXPECT_EQ(outcome.status, RunStatus::kOk) << kernel << ": " << outcome.reason;
  const AttentionProblem problem(raw);
  KernelReplay replay(problem, outcome.declared);
  Shares shares;
  double rows = 0, elements = 0;
  for (std::size_t r = 0; r < problem.rows().size(); ++r) {
    const std::optional<RowOutput> row = replay.row(r, {});
    if (!row) continue;
    const AttentionRow& at = problem.rows()[r];
    for (std::int64_t c = 0; c < problem.params().dim_v; ++c) {
      const std::uint64_t code = outcome.outputs[0].view().code(problem.o_element(at, c));
      shares.o += code == encode(problem.params().output, row->o[static_cast<std::size_t>(c)]) ? 1 : 0;
      ++elements;
    }
    const double lse = outcome.outputs[1].view().value(problem.lse_element(at));
    shares.lse += std::abs(lse - row->lse) <= 1e-5 * (1 + std::abs(lse)) ? 1 : 0;
    ++rows;
  }
  return {shares.o / elements, shares.lse / rows};
}

TEST(KernelReplay, GivesTheBitsOfCorrectKernels) {
  const std::string sources = " q=normal(2)@11 k=normal@12 v=normal@13";
  const std::vector<std::pair<std::string, std::string>> all{
      {"naive_bf16", "attention hq=2 hkv=1 sq=5 skv=200 mask=causal softcap=5"},
      {"fa1_bf16", "attention sq=6 skv=300 window=150,3"},
      {"fa1_fp16", "attention sq=6 skv=300 dtype=fp16 mask=additive mask.data=bias(1)@3"},
      {"fa2_bf16", "attention sq=6 skv=500 sink=in_lse"},
      {"fa2_fp16", "attention hq=3 hkv=1 sq=6 skv=300 d=72 dtype=fp16 descale=head alibi=distance"},
      {"fa3_e4m3", "attention sq=6 skv=700 dtype=e4m3 descale=head"},
      {"fa3_e4m3_single", "attention sq=6 skv=700 dtype=e4m3"},
      {"split_bf16", "attention sq=6 skv=700 mask=causal sink=out_of_lse"},
      {"split_fp16", "attention b=2 sq=3 skv=700 dtype=fp16 batch=padded q_lens=3,2 kv_lens=700,30"},
      {"paged_vllm_bf16", "attention sq=6 skv=300 kv=vllm page=16 page_seed=3"},
      {"paged_split_bf16", "attention sq=6 skv=700 kv=nhd page=16 lse=2"},
      {"cascade_bf16", "attention sq=6 skv=300 prefix=100 sink=in_lse"},
  };
  for (const auto& [kernel, line] : all) {
    const Shares shares = equal_shares(kernel, line + sources);
    EXPECT_GT(shares.o, 0.97) << kernel << " on " << line;
    EXPECT_EQ(shares.lse, 1) << kernel << " on " << line;
  }
}

TEST(KernelReplay, OfAnotherArithmeticGivesOtherBits) {
  const Problem raw = materialize(parse_case("attention sq=6 skv=500 q=normal(2)@11 k=normal@12 v=normal@13"));
  const AttentionProblem problem(raw);
  KernelReplay replay(problem, find_kernel("fa2_bf16")->declared(raw.params));
  const RowOutput right = *replay.row(0, {});
  for (const Deviation& d : std::vector<Deviation>{{.scale = 1.001},
                                                   {.score_store = Format::kBf16},
                                                   {.p_truncated = true},
                                                   {.other_sum = true},
                                                   {.o_power = 0},
                                                   {.l_tile = Format::kBf16},
                                                   {.o_block = Format::kFp16},
                                                   {.reciprocal_store = Format::kBf16},
                                                   {.gain = 1.01}})
    EXPECT_NE(replay.row(0, d)->o, right.o);
  EXPECT_EQ(replay.row(0, {.lse_factor = 2})->o, right.o);
  EXPECT_NE(replay.row(0, {.lse_factor = 2})->lse, right.lse);
}

}  // namespace
}  // namespace assay
