// Faults that another mode can hide on one input: the planted one is named there, or among the rivals. Each of these
// was missed once, by `assay mutants --part confusion` on a seed of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cases/case.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"

namespace assay {
namespace {

#define QKV " q=normal@1 k=normal@2 v=normal@3"

struct Ambiguous {
  std::string mutant, mode, line;
};

class AmongTheRivals : public ::testing::TestWithParam<Ambiguous> {};

TEST_P(AmongTheRivals, IsWhatTheInputCannotTellFromTheModeNamed) {
  const Ambiguous& planted = GetParam();
  const std::unique_ptr<Runner> runner = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
  const Verdict verdict = run_case(parse_case(planted.line), planted.mutant, *runner, {}, {.runs = 2}).verdict;
  EXPECT_TRUE(verdict.mode == planted.mode || std::ranges::find(verdict.rivals, planted.mode) != verdict.rivals.end())
      << verdict.mode << ": " << verdict.evidence;
}

INSTANTIATE_TEST_SUITE_P(
    All, AmongTheRivals,
    ::testing::Values(
        Ambiguous{"fa2_bf16_mask_scaled", "logit_transform",
                  "attention hq=2 sq=4 skv=9 d=16 scale=0 mask=additive sink=out_of_lse empty=nan mask.data=neg_inf "
                  "sink.data=normal@5" QKV},
        Ambiguous{"fa2_bf16_false_max", "false_max",
                  "attention sq=5 skv=2 d=32 scale=-0.125 mask=additive empty=nan mask.data=neg_inf" QKV},
        Ambiguous{"fa2_bf16_false_max", "false_max",
                  "attention hq=3 hkv=1 sq=2 skv=17 d=40 mask=causal align=tl empty_lse=inf q=range_exponents@40747 "
                  "k=range_exponents@40748 v=normal@40749"},
        Ambiguous{"fa2_bf16_exponential_alternates", "function_error",
                  "attention hq=3 hkv=1 d=40 scale=0.5 softcap=0.5 q=probe@39669 k=logit_offset(-60)@39670 "
                  "v=normal@39671"},
        Ambiguous{"fa4_bf16_query_contiguous", "stride_or_dtype",
                  "attention b=2 hq=2 sq=5 skv=2 dv=32 scale=0 mask=block block=4,32 layout=bshd pad_rows=1 pad_dim=4 "
                  "q=probe@21086 k=logit_offset(-1000)@21087 v=normal@21088 mask.data=keep(0.6)@21089 poison=inf"},
        Ambiguous{"fa2_bf16_softcap_omitted", "logit_transform",
                  "attention hq=3 hkv=1 sq=33 d=40 scale=0.5 mask=bool softcap=0.5 descale=head empty=mean "
                  "layout=bhds q=normal@64595 k=normal@64596 v=normal(1,2)@64597 mask.data=empty_rows(3) "
                  "q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.01,0.02)@64599 v_scale=uniform(20,50)@64600"},
        Ambiguous{"fa2_fp16_sum_starts_at_one", "ghost_keys",
                  "attention b=2 hq=6 hkv=3 sq=36 skv=427 d=128 dtype=fp16 q=normal(4)@889982 k=normal@889983 "
                  "v=normal@889984"},
        Ambiguous{"naive_fp32_no_shift", "exponent_overflow",
                  "attention hq=4 hkv=2 d=32 dtype=fp32 scale=0.03 sink=in_lse segments=1 empty=nan layout=bhds "
                  "q=range_exponents@53389 k=range_exponents@53390 v=normal@53391 seg_q=segments(1) "
                  "seg_kv=segments(1) sink.data=constant(40) poison=zero"},
        Ambiguous{"split_bf16_group_above_eight", "head_map",
                  "attention hq=12 hkv=1 skv=40 d=16 out=fp32 q=normal@297703 k=normal@47242 v=normal@364922"},
        Ambiguous{"merge_two_pass_bf16_without_max", "exponent_overflow",
                  "merge parts=3 rows=2 dv=8 o_parts=normal@733549 lse_parts=range_exponents@528103 "
                  "set=lse_parts[1,0]:nan"},
        Ambiguous{"merge_two_pass_fp32_false_max", "false_max",
                  "merge parts=3 rows=2 dv=8 dtype=fp32 pad=2 o_parts=constant lse_parts=normal(1,-20000)@918097 "
                  "set=lse_parts[2,0]:0x469c3ee9"},
        Ambiguous{"fa1_bf16_false_max", "false_max",
                  "attention sq=12 d=16 mask=causal q=probe@892527 k=logit_offset(-20000)@222855 v=normal(0)@785311 "
                  "set=v[0,0,6,10]:0x8003"},
        Ambiguous{"paged_split_bf16_table_ignored", "page_slot_map",
                  "attention b=2 hq=2 sq=4 skv=65 dv=32 scale=0 mask=causal+list list=200 sink=out_of_lse "
                  "descale=head empty=mean lse=2 kv_lens=65,60 kv=vllm_x page_seed=4 table_pad=huge q=normal@19897 "
                  "k=normal@19898 v=same_sign@19899 mask.data=indices(65,0.1)@19900 sink.data=normal(3,2)@19901 "
                  "q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.01,0.02)@19902 v_scale=uniform(20,50)@19903 "
                  "poison=max"},
        Ambiguous{"fa2_bf16_value_descale_of_first_head", "layout_permutation",
                  "attention hq=4 hkv=2 d=16 scale=0.03 mask=bool softcap=0.5 descale=head empty=mean lse=none "
                  "kv=vllm page=1 page_seed=2 table_pad=huge q=normal@20776 k=normal@20777 v=cancelling_pairs@20778 "
                  "mask.data=empty_rows(3) q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.5,1.5)@7 "
                  "v_scale=uniform(0.5,1.5)@8 poison=tag"},
        Ambiguous{"fa3_e4m3_folded_query_range", "intermediate_overflow",
                  "attention sq=20 skv=30 dtype=e4m3 descale=head q=normal(100)@455286 k=normal(0.02)@888992 "
                  "v=normal@3 q_scale=constant(2031.25) k_scale=ones v_scale=ones set=v[0,0,21,47]:0xaa"},
        Ambiguous{"paged_split_bf16_partial_lse_of_first_row", "reduce_row_fold",
                  "attention b=2 hq=2 sq=33 d=40 scale=-0.125 mask=causal+list list=200 softcap=30 descale=head "
                  "empty=nan lse=2 kv_lens=33,19 layout=bshd prefix=16 kv=nhd page_seed=6 table_pad=minus_one "
                  "q=uniform@53197 k=uniform@53198 v=uniform(0)@53199 mask.data=indices(33,0.1)@53200 "
                  "q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.01,0.02)@53201 v_scale=uniform(20,50)@53202 "
                  "poison=zero"},
        Ambiguous{"fa2_bf16_subnormal_flush", "subnormal_flush",
                  "attention hq=6 hkv=2 sq=33 dv=32 scale=0.5 mask=block block=4,32 sink=in_lse empty_lse=inf lse=2 "
                  "layout=bhds q=mixed_exponents@30815 k=mixed_exponents@30816 v=mixed_exponents@30817 "
                  "mask.data=keep(0.6)@30818 sink.data=constant(40) poison=max"},
        Ambiguous{"merge_pairwise_bf16_last_part_only", "merge_weight",
                  "merge rows=3 dv=8 o_parts=normal@916159 lse_parts=part_holes(1)@645349 set=lse_parts[0,1]:2 "
                  "set=lse_parts[1,0]:0x7f800000"},
        Ambiguous{"naive_e4m3_value_descale_of_keys", "value_scale",
                  "attention b=2 hq=4 hkv=1 sq=5 skv=2 dv=32 dtype=e4m3 scale=0 mask=causal+list list=200 "
                  "descale=head empty=mean lse=none batch=padded q_lens=5,2 kv_lens=2,0 q=uniform@48379 "
                  "k=uniform@48380 v=uniform(0)@48381 mask.data=indices(2,0.1)@48382 q_scale=uniform(0.5,1.5)@6 "
                  "k_scale=uniform(0.01,0.02)@48383 v_scale=uniform(20,50)@48384"},
        Ambiguous{"fa2_bf16_head_group_modulus", "head_map",
                  "attention hq=6 hkv=2 sq=17 skv=16 d=40 scale=0.5 mask=causal+list list=200 alibi=diagonal "
                  "slopes=batch_head empty=mean batch=padded kv=vllm page_seed=1 spare_pages=2 table_pad=minus_one "
                  "q=uniform@56065 k=uniform@56066 v=uniform(0)@56067 mask.data=indices(16,0.1)@56068 "
                  "slopes.data=uniform(-0.2,0.5)@56069 poison=max"},
        Ambiguous{"naive_fp32_no_shift", "exponent_overflow",
                  "attention sq=4 skv=65 dv=32 dtype=fp32 sink=in_lse window=24,0 window_ends=left_exclusive "
                  "empty=nan batch=packed v_from=k prefix=32 kv=nhd page_seed=6 table_pad=minus_one q=probe@8892 "
                  "k=range_ladder@8893 sink.data=constant(40) poison=inf"},
        Ambiguous{"split_bf16_softcap_after_mask", "logit_transform",
                  "attention hq=4 hkv=2 sq=33 d=16 scale=0.5 mask=bool softcap=0.5 descale=tensor empty_lse=inf lse=2 "
                  "layout=bhds q=probe@17532 k=logit_offset@17533 v=normal@17534 mask.data=keep(0.75)@17535 "
                  "q_scale=uniform(0.5,1.5)@6 k_scale=uniform(0.5,1.5)@7 v_scale=uniform(0.5,1.5)@8"},
        Ambiguous{"fa2_bf16_pairs_halved", "layout_permutation",
                  "attention hq=2 sq=9 skv=75 d=15 mask=causal q=normal@622506 k=normal@521203 v=normal@89826"},
        Ambiguous{"fa2_fp16_accumulator_range", "intermediate_overflow",
                  "attention b=2 hq=2 sq=2 skv=17 d=40 dtype=fp16 mask=list list=48 softcap=30 empty=nan lse=2 "
                  "batch=packed q_lens=2,0 kv_lens=17,12 v_from=k prefix=8 q=probe@14058 k=logit_offset(-50000)@14059 "
                  "k_prefix=logit_offset(-50000)@14059 mask.data=indices(17,0.2)@14061"},
        Ambiguous{"naive_fp32_no_shift", "exponent_overflow",
                  "attention b=2 hq=4 hkv=1 sq=5 skv=2 d=40 dtype=fp32 scale=0.5 mask=causal alibi=diagonal "
                  "slopes=batch_head segments=1 descale=tensor batch=packed q_lens=5,2 kv_lens=2,0 kv=vllm page=1 "
                  "page_seed=2 table_pad=huge q=normal@10276 k=normal@10277 v=subnormal@10278 seg_q=segments(5) "
                  "seg_kv=segments(40) slopes.data=uniform(-0.2,0.5)@10279 q_scale=uniform(0.5,1.5)@6 "
                  "k_scale=uniform(0.5,1.5)@7 v_scale=uniform(0.5,1.5)@8 poison=max"},
        Ambiguous{"paged_vllm_bf16_page_tail_loaded", "unused_data_poison",
                  "attention sq=17 skv=16 d=8 scale=0.03 mask=causal+bool empty=mean lse=2 layout=bshd kv=vllm_x "
                  "page=128 table_pad=shared q=normal@40920 k=normal@40921 v=normal@40922 mask.data=keep@40923 "
                  "poison=tag"},
        Ambiguous{"paged_flashinfer_bf16_sink_omitted", "logit_transform",
                  "attention b=2 hq=2 sq=9 skv=63 d=32 scale=-0.125 mask=causal+block block=2,16 softcap=8 alibi=key "
                  "sink=in_lse empty=mean kv_lens=63,45 layout=bshd kv=hnd page=1024 spare_pages=1 pad_rows=1 "
                  "pad_dim=4 q=probe@56670 k=logit_offset(-1000)@56671 v=normal@56672 mask.data=keep(0.7)@56673 "
                  "slopes.data=slopes sink.data=normal@5 poison=tag"},
        Ambiguous{
            "paged_flashinfer_bf16_value_slot_off", "page_slot_map",
            "attention hq=4 hkv=2 sq=2 skv=17 d=40 scale=0 mask=block block=4,32 alibi=distance empty=mean "
            "lse=none batch=packed offset=1 kv=hnd page=1024 spare_pages=1 pad_dim=3 q=twin_channels@17006 "
            "k=cancelling_channels@17007 v=normal@17008 mask.data=keep(0.6)@17009 slopes.data=slopes poison=max"}),
    [](const auto& info) { return std::to_string(info.index) + "_" + info.param.mutant; });

}  // namespace
}  // namespace assay
