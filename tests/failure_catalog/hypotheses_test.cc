// Hypotheses where options meet: the input alone names the fault, without a second look.
#include <gtest/gtest.h>

#include <string>

#include "cases/materialize.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"

namespace assay {
namespace {

struct Planted {
  std::string mutant, mode, says, line;
};

class Hypotheses : public ::testing::TestWithParam<Planted> {};

TEST_P(Hypotheses, ExplainTheFaultWhereOptionsMeet) {
  const Planted& planted = GetParam();
  const std::unique_ptr<Runner> runner = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
  const Case c = parse_case(planted.line);
  const Problem problem = materialize(c);
  const RunOutcome run = runner->run(planted.mutant, problem.params, problem.inputs, problem.outputs);
  const Verdict verdict = judge_outputs(c, problem, run.declared, run).verdict;
  EXPECT_EQ(verdict.mode, planted.mode) << verdict.evidence;
  EXPECT_NE(verdict.evidence.find(planted.says), std::string::npos) << verdict.evidence;
}

#define QKV " q=normal@1 k=normal@2 v=normal@3"
INSTANTIATE_TEST_SUITE_P(
    All, Hypotheses,
    ::testing::Values(
        Planted{"fa1_bf16_sequences_joined", "mask_edge", "sees the keys of all 2",
                "attention b=2 hq=2 sq=16 skv=64 d=16 alibi=distance window=24,0 window_ends=left_exclusive "
                "batch=packed q_lens=16,11 kv_lens=64,3 slopes.data=slopes" QKV},
        Planted{"fa2_fp16_padded_lengths_in_mask", "mask_edge", "aligned by the longest lengths",
                "attention b=2 sq=17 skv=16 d=16 dtype=fp16 alibi=distance kv_lens=16,9 kv=vllm page_seed=1 "
                "slopes.data=slopes" QKV},
        Planted{"fa4_bf16_sink_scaled", "logit_transform", "the sink is multiplied by the scale",
                "attention hq=3 hkv=1 sq=5 skv=2 d=16 scale=0.5 mask=bool sink=in_lse mask.data=empty_rows(3) "
                "sink.data=normal@5" QKV},
        Planted{"fa4_bf16_sink_scaled", "logit_transform", "the sink is multiplied by the scale",
                "attention b=2 hq=4 hkv=1 sq=12 skv=127 dv=32 scale=0.03 mask=causal+block block=2,16 "
                "sink=out_of_lse descale=head empty_lse=inf lse=none q=uniform@62855 k=uniform(-2,2)@62856 "
                "v=uniform@62857 mask.data=keep(0.7)@62858 sink.data=normal(3,2)@62859 q_scale=uniform(0.5,1.5)@6 "
                "k_scale=uniform(0.01,0.02)@62860 v_scale=uniform(20,50)@62861"},
        Planted{"fa2_bf16_sink_omitted", "logit_transform", "the sink is not applied",
                "attention hq=4 hkv=2 sq=5 skv=2 d=16 mask=causal sink=in_lse empty=nan sink.data=normal@5" QKV},
        Planted{"split_bf16_sink_in_every_split", "logit_transform", "a single split, merged like several",
                "attention b=2 hq=4 hkv=1 d=16 sink=out_of_lse lse=none sink.data=normal(3,2)@5" QKV},
        Planted{"naive_bf16_output_contiguous", "stride_or_dtype", "o is written as contiguous",
                "attention b=2 hq=2 sq=17 skv=16 d=16 mask=causal segments=1 empty=nan layout=bhds "
                "seg_q=segments(5) seg_kv=segments(40)" QKV},
        Planted{"naive_fp16_raw_score_range", "intermediate_overflow",
                "raw score q.k passes fp16's largest number 65504",
                "attention hq=3 hkv=1 sq=33 d=32 dtype=fp16 mask=bool q=probe@61402 k=logit_offset(-50000)@61403 "
                "v=normal@61404 mask.data=keep(0.75)@61405"},
        Planted{"paged_vllm_bf16_tile_maximum_only", "state_frame", "",
                "attention b=2 hq=8 hkv=2 sq=4 skv=65 d=40 mask=causal empty=mean kv=vllm_x page=128" QKV},
        Planted{"fa2_bf16_scale_of_padded_dim", "logit_scale", "1 / sqrt(48) where 0 is asked for",
                "attention hq=3 hkv=1 sq=9 skv=40 d=40 scale=0" QKV},
        Planted{"fa3_e4m3_factor_of_query_head", "layout_permutation", "the factor of v is that of key head h mod hkv",
                "attention hq=4 hkv=2 sq=5 skv=2 dv=32 dtype=e4m3 mask=causal alibi=last segments=1 descale=head "
                "empty=mean lse=2 prefix=1 q=probe@41193 k=attention_sink(8,4)@41194 v=sink_values@41195 "
                "k_prefix=attention_sink(8,4)@41194 v_prefix=sink_values@41195 seg_q=segments(5) seg_kv=segments(40) "
                "slopes.data=slopes q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.5,1.5)@7 v_scale=uniform(0.5,1.5)@8 "
                "poison=inf"},
        Planted{"naive_bf16_scale_constant", "logit_scale", "1 / sqrt(16) where 0 is asked for",
                "attention hq=6 hkv=2 sq=4 skv=65 d=16 scale=0 mask=causal alibi=key slopes.data=slopes" QKV}),
    [](const auto& info) { return std::to_string(info.index) + "_" + info.param.mutant; });

}  // namespace
}  // namespace assay
