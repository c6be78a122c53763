// Modes M01-M09, M26 and M28-M30 on cases that nobody chose: the planted one is named first, in at least 95 of 100
// failing cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"
#include "tests/failure_catalog/template_case.h"

namespace assay {
namespace {

struct Planted {
  std::string mutant;
  std::vector<std::string> templates;
};

#define QKV "q=normal@{s} k=normal@{s} v=normal@{s}"
const std::string kMoreQueries =
    "attention hq={1..3} sq={40..90} skv={2..39} d={16|32|64} mask=causal " QKV;  // the first rows have no key

const std::vector<Planted>& planted() {
  static const std::vector<Planted> all{
      // M01
      {"fa2_bf16_nan_empty_extent",
       {kMoreQueries, "attention hq={1|2} sq={70..140} skv={150..300} d=32 window={5..30},{5..30} " QKV}},
      {"naive_bf16_empty_row_divided",
       {kMoreQueries, "attention sq={4..9} skv={10..60} d=16 mask=bool mask.data=empty_rows({2..4})@{s} " QKV}},
      {"fa1_bf16_own_tile_unguarded",
       {"attention hq={1|2} sq={130..200} skv={=1} d={16|32} window={5..20},{5..20} " QKV}},
      {"split_bf16_empty_splits_merged",
       {kMoreQueries, "attention sq={4..9} skv={260..600} d=16 mask=bool mask.data=empty_rows({2..4})@{s} " QKV}},
      {"softmax_online_fp32_empty_step_unguarded",
       {"softmax rows={6..12} n={70..300} dtype=fp32 lse={e|2} mask=bool mask.data=block(1,64,0.5)@{s} x=normal@{s}"}},
      {"softmax_two_pass_bf16_empty_sum_divided",
       {"softmax rows={4..9} n={5..200} lse={none|e} mask=bool mask.data=empty_rows({2..3}) x=normal@{s}"}},
      {"softmax_two_pass_fp32_scale_after_fill",
       {"softmax rows={2..9} n={5..100} dtype=fp32 scale={0|-1|-0.25} mask=bool mask.data=keep(0.8)@{s} x=normal@{s}"}},
      {"merge_pairwise_bf16_empty_unguarded",
       {"merge parts={2..6} rows={3..9} dv={8..40} o_parts=normal@{s} lse_parts=part_holes({2..4})@{s}"}},
      {"merge_two_pass_fp16_empty_parts_weighted",
       {"merge parts={2..5} rows={3..9} dv={8..40} dtype=fp16 o_parts=normal@{s} lse_parts=part_holes(1)@{s} "
        "set=lse_parts[0,1]:{1..9}"}},
      // M02
      {"fa2_bf16_tail_values_loaded",
       {"attention b=2 hq={1|2} sq={1..9} skv={90..150} d={16|32|64} batch=padded q_lens={=3},1 "
        "kv_lens={20..70},{71..90} "
        "poison={nan|inf} " QKV}},
      {"paged_vllm_bf16_page_tail_loaded",
       {"attention b=2 hq={1|2} sq={1..5} skv=70 d={16|32} kv=vllm page=16 page_seed={1..9} kv_lens={65..70},{17..47} "
        "poison={nan|inf} " QKV}},
      {"naive_bf16_masked_value_weighed",
       {"attention hq={1|2} sq={20..40} skv={=1} d={16|32} mask=causal masked_nonfinite=ignored " QKV
        " set=v[0,0,{10..19},{0..15}]:{nan|inf}"}},
      {"naive_fp16_mask_added",
       {"attention hq={1|2} sq={20..40} skv={=1} d={16|32} dtype=fp16 mask=causal " QKV
        " set=k[0,0,{10..19},{0..15}]:nan"}},
      {"softmax_online_bf16_mask_added_in_maximum",
       {"softmax rows=4 n={20..200} lse={none|e} mask=bool mask.data=all x=normal@{s} set=mask[1,{3..19}]:0 "
        "set=x[1,{=1}]:{nan|inf}"}},
      {"merge_two_pass_bf16_empty_part_multiplied",
       {"merge parts={3..6} rows={3..9} dv={8..40} masked_nonfinite=ignored o_parts=hole_values({2|3},{2|3})@{s} "
        "lse_parts=part_holes({=3})@{s}"}},
      // M03
      {"naive_fp16_raw_score_range",
       {"attention hq={1..3} sq={10..40} skv={5..60} d=64 dtype=fp16 q=normal({50..80})@{s} k=normal({50..80})@{s} "
        "v=normal@{s}"}},
      {"fa2_fp16_accumulator_range",
       {"attention hq={1|2} sq={4..20} skv={100..400} d={16|32} dtype=fp16 q=normal(0.3)@{s} k=normal@{s} "
        "v=normal(100,{400..1500})@{s}",
        "attention sq=6 skv={100..400} d=32 dtype=fp16 q=normal({2..4})@{s} k=normal@{s} v=normal(3000)@{s}"}},
      {"fa3_e4m3_folded_query_range",
       {"attention hq={1|2} sq={10..30} skv={10..150} d=64 dtype=e4m3 descale=head q=normal(100)@{s} "
        "k=normal(0.02)@{s} "
        "v=normal@{s} q_scale=constant({1000..2500}) k_scale=constant(1) v_scale=constant(1)"}},
      {"softmax_two_pass_fp16_scaled_score_range",
       {"softmax rows={10..20} n={5..100} dtype=fp16 lse={none|e} scale=8 x=normal({3000..6000})@{s}"}},
      {"merge_two_pass_fp16_merged_sum_range",
       {"merge parts={3..6} rows={3..9} dv={8..40} dtype=fp16 o_parts=normal(6000,{12000..25000})@{s} "
        "lse_parts=normal(0.3)@{s}"}},
      // M04
      {"naive_bf16_shift_rounded_twice",
       {"attention hq={1|2} sq={4..12} skv={1..6} d={32|64} q=normal(1e6)@{s} k=normal(1e{5|6})@{s} v=normal@{s}"}},
      {"naive_fp32_no_shift",
       {"attention hq={1|2} sq={8..20} skv={10..60} d={32|64} dtype=fp32 q=normal({40..90})@{s} k=normal@{s} "
        "v=normal@{s}",
        "attention sq={4..9} skv={10..60} d=16 dtype=fp32 q=probe@{s} k=logit_offset({-300..-130})@{s} v=normal@{s}"}},
      {"fa2_bf16_tail_lane_scored_zero",
       {"attention hq={1|2} sq={4..20} skv={70..120} d={16|32|64} mask=additive mask.data=constant(-{110..300}) " QKV,
        "attention sq={4..20} skv={130..250} d=32 q=probe@{s} k=logit_offset({-400..-120})@{s} v=normal@{s}"}},
      {"softmax_two_pass_fp32_shift_rounded_twice",
       {"softmax rows={6..12} n={3..40} dtype=fp32 lse={none|e} x=normal(1e{11|12})@{s}"}},
      {"merge_two_pass_bf16_without_max",
       {"merge parts={2..6} rows={3..9} dv={8..40} o_parts=normal@{s} lse_parts=normal(1,{200|-300|130|-150})@{s}"}},
      // M05
      {"fa3_e4m3_unclamped_p",
       {"attention hq={1|2} sq={5..20} skv={300..600} d=64 dtype=e4m3 q=normal({2..4})@{s} k=normal@{s} v=normal@{s}"}},
      {"fa2_bf16_zero_channel_scale",
       {"attention hq={1|2} sq={5..20} skv={3..12} d=32 q=normal@{s} k=normal@{s} v=one_hot@{s}"}},
      {"fa4_fp16_zero_row_scale",
       {"attention hq={1|2} sq={10..40} skv={5..150} d={1|2} dv=16 dtype=fp16 q=small_integers(1)@{s} k=normal@{s} "
        "v=normal@{s}"}},
      // M06
      {"naive_e4m3_nan_code_decoded",
       {"attention hq={1|2} sq={5..20} skv={5..60} d={16|32} dtype=e4m3 " QKV " set={q|k|v}[0,0,{0..4},{0..15}]:nan"}},
      {"naive_fp16_output_clamped",
       {"attention hq={1|2} sq={5..20} skv={5..60} d={16|32} dtype=fp16 " QKV " set={q|k}[0,0,{0..4},{0..15}]:nan",
        "attention sq={5..20} skv={5..60} d={16|32} dtype=fp16 " QKV " set=v[0,0,{0..4},{0..15}]:{nan|inf|-inf}"}},
      {"softmax_online_fp32_nan_key_dropped",
       {"softmax rows={2..9} n={10..200} dtype=fp32 lse={none|e} x=normal@{s} set=x[1,{0..9}]:nan"}},
      {"merge_pairwise_bf16_nan_part_dropped",
       {"merge parts={2..6} rows={3..9} dv={8..40} o_parts=normal@{s} lse_parts=normal@{s} "
        "set=lse_parts[{0|1},2]:nan"}},
      // M07
      {"fa2_bf16_false_max",
       {"attention hq={1|2} sq={3..20} skv={2..200} d={16|32} scale=1 q=probe@{s} k=logit_offset({-90000..-55000})@{s} "
        "v=normal@{s}"}},
      {"fa1_bf16_false_max",
       {"attention hq={1|2} sq={3..20} skv={2..200} d={16|32} scale=1 q=probe@{s} k=logit_offset({-90000..-11000})@{s} "
        "v=normal@{s}"}},
      {"naive_bf16_mask_filled",
       {"attention hq={1|2} sq={10..40} skv={=1} d={16|32} mask=causal q=probe@{s} "
        "k=logit_offset({-90000..-11000})@{s} "
        "v=normal@{s}"}},
      {"softmax_two_pass_fp32_mask_filled",
       {"softmax rows={3..9} n={10..100} dtype=fp32 lse={none|e} mask=bool mask.data=keep(0.5)@{s} "
        "x=normal(1,{-90000..-11000})@{s}"}},
      {"softmax_online_fp32_false_max",
       {"softmax rows={3..9} n={10..200} dtype=fp32 lse={none|e} x=normal(1,{-90000..-11000})@{s}",
        "softmax rows={3..9} n={10..99} dtype=fp32 steps={5..20} x=normal(20,{-10200..-10000})@{s}"}},
      {"merge_two_pass_fp32_false_max",
       {"merge parts={2..6} rows={3..9} dv={8..40} dtype=fp32 o_parts=normal@{s} "
        "lse_parts=normal(1,{-90000..-11000})@{s}"}},
      // M08
      {"fa2_bf16_odd_row_unstored", {"attention hq={1|2} sq={1|3|5|7|67} skv={5..150} d={16|32} " QKV}},
      {"split_fp16_empty_row_unstored",
       {"attention hq={1..3} sq={40..90} skv={2..39} d={16|32} dtype=fp16 mask=causal " QKV}},
      {"naive_bf16_odd_head_unstored", {"attention hq={3|5} sq={1..9} skv={5..60} d=16 " QKV}},
      {"softmax_two_pass_fp16_tail_columns_unstored",
       {"softmax rows={2..9} n={5|6|7|101|202|303} dtype=fp16 lse={none|e} x=normal@{s}"}},
      {"merge_pairwise_fp16_tail_channels_unstored",
       {"merge parts={2..6} rows={3..9} dv={17..31} dtype=fp16 o_parts=normal@{s} lse_parts=normal@{s}"}},
      // M09
      {"fa2_bf16_empty_row_mean", {kMoreQueries}},
      {"fa2_fp16_empty_lse_other_sign",
       {"attention hq={1..3} sq={40..90} skv={2..39} d={16|32} dtype=fp16 mask=causal " QKV}},
      {"paged_flashinfer_bf16_empty_lse_finite",
       {"attention hq={1..3} sq={40..90} skv={2..39} d={16|32} mask=causal kv={nhd|hnd} page=16 " QKV}},
      {"softmax_two_pass_bf16_empty_row_uniform",
       {"softmax rows={4..9} n={5..200} lse={none|e} mask=bool mask.data=empty_rows({2..3}) x=normal@{s}"}},
      {"merge_two_pass_bf16_empty_lse_zero",
       {"merge parts={2..5} rows={3..9} dv={8..40} o_parts=normal@{s} lse_parts=part_holes(1)@{s} "
        "set=lse_parts[0,1]:{1..9}"}},
      // M26
      {"fa2_bf16_subnormal_flush",
       {"attention hq={1|2} sq={3..9} skv={2..60} d={16|32} q=normal@{s} k=normal@{s} v=subnormal@{s}"}},
      {"fa3_e4m3_small_factor_flushed",
       {"attention hq={1|2} sq={3..9} skv={20..100} d=32 dtype=e4m3 descale=head " QKV
        " v_scale=constant(0.0000{1..5})"}},
      {"naive_e4m3_subnormal_codes",
       {"attention hq={1|2} sq={3..9} skv={5..60} d=32 dtype=e4m3 q=normal@{s} k=normal@{s} v=normal(0.0{1|2|3})@{s}"}},
      {"softmax_two_pass_fp16_subnormal_flush",
       {"softmax rows={3..9} n={20..300} dtype=fp16 lse={none|e} x=normal({5..9})@{s}"}},
      {"merge_two_pass_fp16_subnormal_flush",
       {"merge parts={2..6} rows={3..9} dv={8..40} dtype=fp16 o_parts=subnormal({0.5|1})@{s} lse_parts=normal@{s}"}},
      // M28
      {"fa3_e4m3_factor_of_query_head",
       {"attention b={1|2} hq={4|8} hkv=2 sq={3..9} skv={20..200} d=64 dtype=e4m3 descale=head " QKV
        " v_scale=uniform(0.5,2)@{s}"}},
      {"naive_e4m3_factor_of_first_block",
       {"attention hq={1|2} sq={3..9} skv={100..200} d=32 dtype=e4m3 descale=block scale_block={16|32|48} " QKV
        " k_scale=uniform(0.5,2)@{s} v_scale=uniform(0.5,2)@{s}"}},
      {"naive_e5m2_factor_per_128",
       {"attention hq={1|2} sq={3..9} skv={150..300} d=32 dtype=e5m2 descale=block scale_block={16|32|48|64} " QKV
        " k_scale=uniform(0.5,2)@{s} v_scale=uniform(0.5,2)@{s}"}},
      {"paged_vllm_bf16_split_lanes_swapped",
       {"attention b=2 hq={1|2} sq={1..5} skv=70 d={16|32|64} kv=vllm_x page=16 page_seed={1..9} "
        "kv_lens={65..70},{17..47} " QKV}},
      {"fa2_bf16_pairs_halved", {"attention hq={1|2} sq={2..9} skv={20..200} d={16|32|64} " QKV}},
      {"fa4_bf16_columns_swizzled", {"attention hq={1|2} sq={2..9} skv={20..200} d={16|32|64} " QKV}},
      // M29
      {"softmax_online_fp32_sum_order_varies", {"softmax rows={3..9} n={100..300} dtype=fp32 lse=e x=normal@{s}"}},
      {"split_bf16_merge_order_varies", {"attention hq=2 sq={8..12} skv={800..1100} d=32 " QKV}},
      {"fa2_bf16_stale_value_tile", {"attention hq={1|2} sq={3..9} skv={200..400} d={16|32} " QKV}},
      {"merge_pairwise_fp32_stale_part_lse",
       {"merge parts={2..6} rows={3..9} dv={8..40} dtype=fp32 o_parts=normal@{s} lse_parts=normal@{s}"}},
      // M30
      {"paged_vllm_bf16_stale_lengths",
       {"attention b=2 hq={1|2} sq={1..5} skv=70 d={16|32} kv=vllm page=16 page_seed={1..9} "
        "kv_lens={65..70},{17..47} " QKV}},
      {"paged_split_bf16_stale_table",
       {"attention b=2 hq={1|2} sq={1..5} skv=70 d={16|32} kv={vllm|nhd} page=16 page_seed={1..9} "
        "kv_lens={65..70},{17..47} " QKV}},
      {"merge_two_pass_fp32_stale_accumulator",
       {"merge parts={2..6} rows={3..9} dv=16 dtype=fp32 o_parts=normal@{s} lse_parts=normal@{s}"}},
  };
  return all;
}
#undef QKV

constexpr std::uint64_t kSeed = 20261130;
constexpr int kFailing = 2, kTries = 6;  ///< cases of each mutant: failing ones wanted, drawn at most

bool failed(const Verdict& verdict) {
  return verdict.kind == CaseVerdict::kFinding || verdict.kind == CaseVerdict::kUnclassified;
}

class PlantedModes : public ::testing::Test {
 protected:
  PlantedModes() : runner_(worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}})) {}
  std::unique_ptr<Runner> runner_;
};

TEST_F(PlantedModes, AreNamedFirstOnCasesThatNobodyChose) {
  std::map<std::string, std::string> expects;
  for (const KernelIdentity& kernel : runner_->kernels()) expects[kernel.name] = kernel.expects;
  TemplateCases cases(kSeed);
  std::map<std::string, std::map<std::string, int>> confusion;
  int failing = 0, named = 0;
  for (const Planted& plant : planted()) {
    ASSERT_TRUE(expects.contains(plant.mutant)) << plant.mutant;
    const std::string& mode = expects[plant.mutant];
    int failing_here = 0;
    for (int n = 0; n < kTries && failing_here < kFailing; ++n) {
      const std::string line = cases.line(plant.templates[static_cast<std::size_t>(n) % plant.templates.size()]);
      const Record record = run_case(parse_case(line), plant.mutant, *runner_, Level::kT1, {.runs = 2});
      if (!failed(record.verdict)) continue;
      ++failing, ++failing_here;
      ++confusion[mode][record.verdict.mode.empty() ? "unclassified" : std::string(record.verdict.mode)];
      if (record.verdict.mode == mode) {
        ++named;
        continue;
      }
      std::cout << plant.mutant << " is taken for " << record.verdict.mode << " on '" << record.case_line
                << "': " << record.verdict.evidence << "\n";
    }
    EXPECT_GT(failing_here, 0) << plant.mutant << " never fails";
  }
  for (const auto& [mode, row] : confusion)
    for (const auto& [other, count] : row) std::cout << mode << " -> " << other << ": " << count << "\n";
  EXPECT_GE(named * 100, failing * 95) << named << " of " << failing;
}

}  // namespace
}  // namespace assay
