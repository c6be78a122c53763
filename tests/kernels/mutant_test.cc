// Each planted fault does what it says, and nothing where it does not apply; run through the mutant program.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/worker.h"
#include "tests/kernels/scenario.h"

namespace assay {
namespace {

class Mutant : public testing::Test {
 protected:
  static void SetUpTestSuite() { runner_ = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}}).release(); }
  static void TearDownTestSuite() { delete runner_; }

  static RunOutcome run(const std::string& kernel, const Scenario& s) {
    RunOutcome outcome = runner_->run(kernel, s.params, s.inputs, s.outputs);
    EXPECT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
    return outcome;
  }
  static double o(const RunOutcome& outcome, const Scenario& s, std::int64_t row, std::int64_t channel) {
    return outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, row, channel));
  }
  static double lse(const RunOutcome& outcome, std::int64_t row) { return outcome.outputs[1].view().value(row); }

  static Runner* runner_;
};
Runner* Mutant::runner_ = nullptr;

/// Where a mutant must give the bits of its base, and where it must not.
struct Reach {
  std::string mutant;
  std::string agrees;   ///< empty: nowhere
  std::string differs;  ///< empty: a test of its own
  bool in_lse = false;  ///< the LSE differs there too; otherwise it must agree
};

const std::vector<Reach>& reaches() {
  static const std::vector<Reach> all{
      {"fa2_bf16_accumulator_not_rescaled", "sq=3 skv=128 d=16", ""},
      {"fa2_bf16_false_max", "sq=3 skv=1 d=16", ""},
      {"fa2_bf16_last_key_dropped", "sq=3 skv=1 d=16", ""},
      {"fa2_bf16_mask_shifted_by_one", "sq=3 skv=300 d=16", ""},
      {"fa2_bf16_nan_empty_extent", "sq=3 skv=300 d=16", ""},
      {"fa2_bf16_subnormal_flush", "sq=3 skv=300 d=16", ""},
      {"fa2_bf16_scale_off_1e-3", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa2_bf16_scale_off_1e-4", "sq=3 skv=300 d=16 scale=0", "sq=9 skv=300 d=16", true},
      {"fa2_bf16_key_of_128_dropped", "sq=3 skv=127 d=16", "sq=3 skv=128 d=16", true},
      {"fa2_bf16_alpha_in_bf16", "sq=3 skv=128 d=16", "sq=20 skv=1000 d=16"},
      {"fa2_bf16_score_in_bf16", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa2_bf16_score_in_fp16", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa2_bf16_p_truncated", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16"},
      {"fa2_bf16_sum_in_bf16", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa2_bf16_accumulator_in_bf16", "sq=3 skv=1 d=16", "sq=3 skv=1000 d=16"},
      {"fa2_bf16_accumulator_in_fp16", "sq=3 skv=1 d=16", "sq=3 skv=1000 d=16"},
      {"fa2_bf16_exponential_alternates", "", "sq=3 skv=3 d=16", true},
      {"fa2_bf16_cubic_exponentials", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa2_bf16_output_truncated", "sq=3 skv=1 d=16 scale=0", "sq=3 skv=300 d=16"},
      {"fa2_bf16_padded_key_leaks", "sq=3 skv=256 d=16", "sq=3 skv=255 d=16", true},
      {"fa2_bf16_sum_of_rounded_p", "sq=3 skv=300 d=16 scale=0", "sq=3 skv=300 d=16", true},
      {"fa3_e4m3_key_of_128_dropped", "sq=3 skv=127 d=16 dtype=e4m3", "sq=3 skv=128 d=16 dtype=e4m3", true},
      {"fa3_e4m3_lazy_maximum", "sq=3 skv=128 d=16 dtype=e4m3", ""},
      {"fa3_e4m3_promotion_missing", "sq=3 skv=128 d=16 dtype=e4m3", "sq=3 skv=1000 d=16 dtype=e4m3"},
      {"split_bf16_last_key_dropped", "sq=3 skv=1 d=16", "sq=3 skv=2 d=16", true},
      {"split_bf16_scale_off_1e-4", "sq=3 skv=300 d=16 scale=0", "sq=9 skv=300 d=16", true},
      {"split_bf16_padded_key_leaks", "sq=3 skv=256 d=16", "sq=3 skv=255 d=16", true},
      {"split_bf16_partial_lse_in_bf16", "sq=3 skv=1 d=16 scale=0", "sq=3 skv=1000 d=16", true},
      {"split_bf16_partial_output_in_bf16", "sq=3 skv=1 d=16", "sq=3 skv=1000 d=16"},
      {"split_bf16_split_lost", "sq=3 skv=256 d=16", "sq=3 skv=257 d=16", true},
      // M01-M09
      {"naive_bf16_empty_row_divided", "sq=3 skv=300 d=16", "sq=3 skv=2 d=16 mask=causal"},
      {"fa1_bf16_own_tile_unguarded", "sq=3 skv=300 d=16", "sq=70 skv=70 d=16 window=2,2", true},
      {"split_bf16_empty_splits_merged", "sq=3 skv=300 d=16", "sq=3 skv=2 d=16 mask=causal", true},
      {"fa2_bf16_tail_values_loaded", "sq=3 skv=300 d=16",
       "b=2 sq=2 skv=30 d=16 batch=padded q_lens=2,1 kv_lens=30,17"},
      {"paged_vllm_bf16_page_tail_loaded", "sq=3 skv=32 d=16 kv=vllm page=16", "sq=3 skv=20 d=16 kv=vllm page=16"},
      {"naive_bf16_masked_value_weighed", "sq=3 skv=300 d=16 mask=causal", ""},
      {"naive_fp16_mask_added", "sq=3 skv=300 d=16 mask=causal dtype=fp16", ""},
      {"naive_fp16_raw_score_range", "sq=3 skv=300 d=16 dtype=fp16", ""},
      {"fa2_fp16_accumulator_range", "sq=3 skv=300 d=16 dtype=fp16", ""},
      {"fa3_e4m3_folded_query_range", "sq=3 skv=128 d=16 dtype=e4m3", ""},
      {"naive_bf16_shift_rounded_twice", "sq=3 skv=300 d=16 scale=0", ""},
      {"naive_fp32_no_shift", "sq=3 skv=300 d=16 dtype=fp32 scale=0", "sq=3 skv=300 d=16 dtype=fp32", true},
      {"fa2_bf16_tail_lane_scored_zero", "sq=3 skv=300 d=16", ""},
      {"fa3_e4m3_unclamped_p", "sq=3 skv=128 d=16 dtype=e4m3", ""},
      {"fa2_bf16_zero_channel_scale", "sq=3 skv=300 d=16", ""},
      {"fa4_fp16_zero_row_scale", "sq=3 skv=300 d=16 dtype=fp16", ""},
      {"naive_e4m3_nan_code_decoded", "sq=3 skv=300 d=16 dtype=e4m3", ""},
      {"naive_fp16_output_clamped", "sq=3 skv=300 d=16 dtype=fp16", ""},
      {"fa1_bf16_false_max", "sq=3 skv=1 d=16", ""},
      {"naive_bf16_mask_filled", "sq=3 skv=300 d=16 mask=causal", ""},
      {"fa2_bf16_odd_row_unstored", "sq=4 skv=300 d=16", "sq=3 skv=300 d=16", true},
      {"split_fp16_empty_row_unstored", "sq=3 skv=300 d=16 dtype=fp16", "sq=3 skv=2 d=16 mask=causal dtype=fp16", true},
      {"naive_bf16_odd_head_unstored", "hq=2 sq=3 skv=30 d=16", "hq=3 sq=3 skv=30 d=16", true},
      {"fa2_bf16_empty_row_mean", "sq=3 skv=300 d=16", "sq=3 skv=2 d=16 mask=causal"},
      {"fa2_fp16_empty_lse_other_sign", "sq=3 skv=300 d=16 dtype=fp16", ""},
      {"paged_flashinfer_bf16_empty_lse_finite", "sq=3 skv=30 d=16 kv=nhd page=16", ""},
      // M26
      {"fa3_e4m3_small_factor_flushed", "sq=3 skv=128 d=16 dtype=e4m3 descale=head", ""},
      {"naive_e4m3_subnormal_codes", "", "sq=3 skv=300 d=16 dtype=e4m3", true},
      // M28-M30
      {"fa3_e4m3_factor_of_query_head", "hq=4 hkv=2 sq=3 skv=128 d=16 dtype=e4m3",
       "hq=4 hkv=2 sq=3 skv=128 d=16 dtype=e4m3 descale=head"},
      {"naive_e4m3_factor_of_first_block", "sq=3 skv=300 d=16 dtype=e4m3 descale=block scale_block=512",
       "sq=3 skv=300 d=16 dtype=e4m3 descale=block scale_block=32", true},
      {"naive_e5m2_factor_per_128", "sq=3 skv=300 d=16 dtype=e5m2 descale=block scale_block=128",
       "sq=3 skv=300 d=16 dtype=e5m2 descale=block scale_block=32", true},
      {"paged_vllm_bf16_split_lanes_swapped", "sq=3 skv=30 d=16 kv=vllm page=16", "sq=3 skv=30 d=16 kv=vllm_x page=16",
       true},
      {"fa2_bf16_pairs_halved", "sq=3 skv=300 d=2", "sq=3 skv=300 d=16", true},
      {"fa4_bf16_columns_swizzled", "sq=3 skv=300 d=16 dv=1", "sq=3 skv=300 d=16"},
      {"split_bf16_merge_order_varies", "sq=3 skv=256 d=16", ""},
      {"fa2_bf16_stale_value_tile", "sq=3 skv=128 d=16", ""},
      {"paged_vllm_bf16_stale_lengths", "sq=3 skv=30 d=16 kv=vllm page=16", ""},
      {"paged_split_bf16_stale_table", "sq=3 skv=30 d=16 kv=vllm page=16", ""},
      // M18 to M25
      {"fa3_e4m3_key_descale_dropped", "sq=3 skv=130 d=16 dtype=e4m3", "sq=3 skv=130 d=16 dtype=e4m3 descale=head",
       true},
      {"naive_e4m3_key_descale_twice", "sq=3 skv=130 d=16 dtype=e4m3", "sq=3 skv=130 d=16 dtype=e4m3 descale=head",
       true},
      {"fa3_e4m3_single_query_descale_dropped", "sq=3 skv=130 d=16 dtype=e4m3",
       "sq=3 skv=130 d=16 dtype=e4m3 descale=head", true},
      {"fa2_bf16_scale_of_padded_dim", "sq=3 skv=300 d=16", "sq=3 skv=300 d=24", true},
      {"naive_bf16_scale_constant", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 scale=0.5", true},
      {"split_fp16_scale_twice_in_short_tile", "sq=3 skv=128 d=16 dtype=fp16", "sq=3 skv=129 d=16 dtype=fp16", true},
      {"fa3_e4m3_value_descale_dropped", "sq=3 skv=130 d=16 dtype=e4m3", "sq=3 skv=130 d=16 dtype=e4m3 descale=head"},
      {"naive_e4m3_value_descale_of_keys", "sq=3 skv=130 d=16 dtype=e4m3", ""},
      {"fa2_bf16_value_descale_of_first_head", "sq=3 skv=30 d=16 descale=head", "hq=2 sq=3 skv=30 d=16 descale=head"},
      {"fa1_bf16_value_descale_twice", "sq=3 skv=130 d=16", "sq=3 skv=130 d=16 descale=head"},
      {"fa2_bf16_softcap_omitted", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 softcap=2", true},
      {"split_bf16_softcap_after_mask", "sq=3 skv=30 d=16 softcap=2", "sq=3 skv=30 d=16 softcap=2 mask=causal", true},
      {"naive_bf16_softcap_of_log2", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 softcap=2", true},
      {"fa4_bf16_alibi_sign", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 alibi=distance", true},
      {"paged_flashinfer_bf16_alibi_off_by_one", "sq=3 skv=30 d=16 kv=nhd", ""},
      {"fa1_bf16_slopes_from_formula", "sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16 alibi=distance", true},
      {"fa2_bf16_mask_scaled", "sq=3 skv=30 d=16 mask=additive scale=1", "sq=3 skv=30 d=16 mask=additive", true},
      {"fa2_bf16_sink_omitted", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 sink=in_lse", true},
      {"paged_flashinfer_bf16_sink_omitted", "sq=3 skv=30 d=16 kv=nhd", "sq=3 skv=30 d=16 kv=nhd sink=in_lse", true},
      {"fa4_bf16_sink_scaled", "sq=3 skv=30 d=16 sink=in_lse scale=1", "sq=3 skv=30 d=16 sink=in_lse", true},
      {"split_bf16_sink_in_every_split", "sq=3 skv=300 d=16", "sq=3 skv=300 d=16 sink=in_lse", true},
      {"cascade_bf16_sink_in_every_part", "sq=3 skv=30 d=16 prefix=8", "sq=3 skv=30 d=16 prefix=8 sink=in_lse", true},
      {"split_bf16_merge_base_two", "sq=3 skv=256 d=16", "sq=3 skv=300 d=16", true},
      {"paged_split_bf16_partial_lse_base_two", "", "sq=3 skv=300 d=16 kv=vllm", true},
      {"fa4_bf16_lse_times_ln2", "sq=3 skv=30 d=16 lse=none", ""},
      {"split_bf16_empty_part_counted", "sq=3 skv=600 d=16", "", true},
      {"split_fp16_lse_not_stored", "sq=3 skv=600 d=16 dtype=fp16", ""},
      {"fa2_fp16_sum_not_rescaled", "sq=3 skv=128 d=16 dtype=fp16", "sq=9 skv=500 d=16 dtype=fp16", true},
      {"paged_flashinfer_bf16_state_not_rescaled", "sq=3 skv=64 d=16 kv=nhd", "sq=9 skv=300 d=16 kv=nhd", true},
      {"split_fp16_rescaled_twice", "sq=3 skv=64 d=16 dtype=fp16", "sq=9 skv=300 d=16 dtype=fp16"},
      {"paged_vllm_bf16_tile_maximum_only", "sq=3 skv=64 d=16 kv=vllm", ""},
      {"fa2_fp16_stale_maximum", "sq=3 skv=128 d=16 dtype=fp16", "sq=9 skv=500 d=16 dtype=fp16", true},
      {"fa1_bf16_divided_every_step", "sq=3 skv=64 d=16", "sq=3 skv=300 d=16"},
      {"fa1_fp16_tile_frame_kept", "sq=3 skv=64 d=16 dtype=fp16", "sq=3 skv=300 d=16 dtype=fp16"},
      {"fa3_e4m3_offset_dropped", "sq=3 skv=130 d=16 dtype=e4m3 scale=0", "sq=3 skv=1000 d=16 dtype=e4m3 scale=1"},
      {"fa3_e4m3_single_offset_too_large", "", "sq=3 skv=130 d=16 dtype=e4m3"},
      {"naive_bf16_weights_in_bf16", "sq=3 skv=30 d=16 scale=0", "sq=3 skv=300 d=16"},
      {"fa4_bf16_score_sum_in_fp16", "sq=3 skv=30 d=16 scale=0", "sq=3 skv=300 d=64", true},
      {"naive_bf16_score_sum_in_bf16", "sq=3 skv=30 d=16 scale=0", "sq=3 skv=30 d=16", true},
      {"fa2_fp16_sum_in_fp16", "sq=3 skv=300 d=16 dtype=fp16 scale=0", "sq=3 skv=300 d=16 dtype=fp16", true},
      {"naive_fp16_value_sum_in_fp16", "sq=3 skv=1 d=16 dtype=fp16", "sq=3 skv=300 d=16 dtype=fp16"},
      {"split_fp16_lse_in_fp16", "sq=3 skv=300 d=16 dtype=fp16 lse=none", ""},
      {"paged_flashinfer_bf16_reciprocal_in_bf16", "sq=3 skv=64 d=16 kv=nhd scale=0", "sq=3 skv=300 d=16 kv=nhd"},
      {"fa2_bf16_cast_before_scale", "sq=3 skv=130 d=16", "sq=9 skv=130 d=16 descale=head"},
      {"split_bf16_unanchored_cubic", "", "sq=3 skv=300 d=16", true},
      {"paged_vllm_bf16_quadratic_exponentials", "sq=3 skv=30 d=16 kv=vllm scale=0", "sq=3 skv=300 d=16 kv=vllm", true},
      {"fa2_bf16_tanh_rational", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 softcap=2", true},
      {"fa1_bf16_log_quadratic", "sq=3 skv=64 d=16 scale=0", ""},
      {"naive_fp16_reciprocal_one_step", "", "sq=3 skv=30 d=16 dtype=fp16"},
      // M10 to M17: wrong keys, wrong address
      {"fa2_bf16_mask_top_left", "sq=3 skv=3 d=16 mask=causal", "sq=3 skv=30 d=16 mask=causal", true},
      {"split_bf16_decode_top_left", "sq=3 skv=30 d=16 mask=causal", "sq=1 skv=30 d=16 mask=causal", true},
      {"fa2_fp16_padded_lengths_in_mask", "sq=3 skv=30 d=16 mask=causal dtype=fp16", "", false},
      {"fa1_bf16_window_left_wide", "sq=3 skv=30 d=16 mask=causal", "sq=3 skv=30 d=16 window=4,-1", true},
      {"naive_bf16_window_row_off", "sq=1 skv=30 d=16 window=4,-1", "sq=3 skv=30 d=16 window=4,-1", true},
      {"naive_fp16_window_ends_open", "sq=3 skv=30 d=16 window=4,-1 window_ends=left_exclusive dtype=fp16",
       "sq=3 skv=30 d=16 window=4,-1 dtype=fp16", true},
      {"fa4_bf16_causal_ignored", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 mask=causal", true},
      {"fa2_fp16_segments_ignored", "sq=3 skv=30 d=16 dtype=fp16", "", false},
      {"fa1_fp16_mask_length_minus_one", "sq=3 skv=30 d=16 dtype=fp16", "", false},
      {"fa1_bf16_sequences_joined", "sq=3 skv=30 d=16", "", false},
      {"fa1_fp16_tail_lanes_count", "sq=3 skv=30 d=16 mask=causal dtype=fp16", "sq=3 skv=30 d=16 dtype=fp16", true},
      {"paged_flashinfer_bf16_page_tail_counts", "sq=3 skv=32 d=16 kv=nhd", "sq=3 skv=30 d=16 kv=nhd", true},
      {"fa2_fp16_sum_starts_at_one", "", "sq=3 skv=30 d=16 dtype=fp16", true},
      {"naive_bf16_tail_keys_repeated", "sq=3 skv=32 d=16", "sq=3 skv=30 d=16", true},
      {"fa2_fp16_diagonal_tile_skipped", "sq=3 skv=300 d=16 dtype=fp16", "sq=100 skv=300 d=16 mask=causal dtype=fp16",
       true},
      {"fa4_bf16_tiles_stop_at_diagonal", "sq=3 skv=300 d=16", "sq=200 skv=300 d=16 mask=bool", true},
      {"fa1_bf16_window_tail_sliced", "sq=1 skv=30 d=16 window=4,-1", "sq=3 skv=30 d=16 window=4,-1", true},
      {"cascade_bf16_prefix_edge_dropped", "", "sq=3 skv=30 d=16 prefix=10", true},
      {"naive_fp16_tail_of_four_skipped", "sq=3 skv=32 d=16 dtype=fp16", "sq=3 skv=30 d=16 dtype=fp16", true},
      {"naive_bf16_heads_tiled", "hq=2 sq=3 skv=30 d=16", "hq=4 hkv=2 sq=3 skv=30 d=16", true},
      {"fa2_bf16_head_group_modulus", "hq=4 hkv=2 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16", true},
      {"fa4_bf16_head_zero", "hq=2 hkv=1 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16", true},
      {"split_bf16_group_above_eight", "hq=8 hkv=1 sq=3 skv=30 d=16", "hq=9 hkv=1 sq=3 skv=30 d=16", true},
      {"fa1_bf16_value_of_next_head", "hq=2 hkv=1 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16", false},
      {"paged_flashinfer_bf16_table_of_first", "sq=3 skv=60 d=16 kv=nhd", "b=2 sq=3 skv=60 d=16 kv=nhd", true},
      {"paged_vllm_bf16_last_page_repeats", "sq=3 skv=16 d=16 kv=vllm", "sq=3 skv=60 d=16 kv=vllm", true},
      {"paged_split_bf16_table_ignored", "sq=3 skv=60 d=16 kv=vllm", "sq=3 skv=60 d=16 kv=vllm page_seed=3", true},
      {"paged_vllm_bf16_page_cursor_of_pair", "sq=3 skv=16 d=16 kv=vllm", "sq=3 skv=60 d=16 kv=vllm", false},
      {"paged_flashinfer_bf16_value_slot_off", "sq=3 skv=60 d=16 kv=nhd page=1", "sq=3 skv=60 d=16 kv=nhd", false},
      {"fa2_bf16_values_contiguous", "hq=2 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16 layout=bshd", false},
      {"fa4_bf16_query_contiguous", "hq=2 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16 layout=bshd", true},
      {"naive_bf16_output_contiguous", "hq=2 sq=3 skv=30 d=16", "hq=2 sq=3 skv=30 d=16 layout=bshd", false},
      {"fa1_bf16_mask_read_as_half", "sq=3 skv=30 d=16", "sq=3 skv=30 d=16 mask=additive", true},
      {"fa2_fp16_first_64_lanes", "sq=3 skv=30 d=64 dtype=fp16", "sq=3 skv=30 d=96 dtype=fp16", true},
      {"paged_vllm_bf16_key_offset_wraps", "sq=3 skv=60 d=16 kv=vllm", "sq=1 skv=1200 d=64 kv=vllm", true},
      {"fa2_bf16_value_offset_wraps", "sq=3 skv=60 d=16", "sq=1 skv=600 d=64", false},
      {"fa1_bf16_query_offset_wraps", "sq=3 skv=60 d=16", "sq=300 skv=10 d=128", true},
      {"naive_fp16_mask_offset_wraps", "sq=3 skv=60 d=16 mask=bool dtype=fp16",
       "sq=40 skv=900 d=16 mask=bool dtype=fp16", true},
      {"split_bf16_batch_folded", "b=2 sq=3 skv=60 d=16", "b=2 sq=3 skv=600 d=16", true},
      {"paged_split_bf16_partial_lse_of_first_row", "sq=1 skv=600 d=16 kv=vllm", "sq=3 skv=600 d=16 kv=vllm", true},
      {"split_fp16_partial_of_next_row", "sq=1 skv=600 d=16 dtype=fp16", "sq=3 skv=600 d=16 dtype=fp16", false},
  };
  return all;
}

/// The longest name of a correct kernel that begins the mutant's.
std::string base_of(const std::string& mutant) {
  std::string base;
  for (const KernelIdentity& kernel : in_process_runner()->kernels())
    if (mutant.starts_with(kernel.name + "_") && kernel.name.size() > base.size()) base = kernel.name;
  return base;
}

TEST_F(Mutant, DeclaresItsBaseAndAgreesWithItWhereNoFaultApplies) {
  std::set<std::string> names, expected;
  for (const KernelIdentity& kernel : runner_->kernels())
    if (kernel.mutant && !kernel.device && kernel.op == "attention") names.insert(kernel.name);
  for (const Reach& reach : reaches()) {
    expected.insert(reach.mutant);
    const Scenario s(reach.agrees.empty() ? reach.differs : reach.agrees);
    const RunOutcome good = run(base_of(reach.mutant), s);
    const RunOutcome outcome = run(reach.mutant, s);
    EXPECT_EQ(outcome.declared, good.declared) << reach.mutant;
    if (reach.agrees.empty()) continue;
    for (std::size_t t = 0; t < good.outputs.size(); ++t)
      EXPECT_TRUE(outcome.outputs[t].bytes == good.outputs[t].bytes) << reach.mutant << " " << t;
  }
  EXPECT_EQ(expected, names);
}

TEST_F(Mutant, ChangesWhatItsFaultReachesAndNothingElse) {
  for (const Reach& reach : reaches()) {
    if (reach.differs.empty()) continue;
    const Scenario s(reach.differs);
    const RunOutcome good = run(base_of(reach.mutant), s);
    const RunOutcome outcome = run(reach.mutant, s);
    EXPECT_TRUE(outcome.outputs[0].bytes != good.outputs[0].bytes) << reach.mutant;
    EXPECT_EQ(outcome.outputs[1].bytes != good.outputs[1].bytes, reach.in_lse) << reach.mutant;
  }
}

TEST_F(Mutant, OfTheMutantProgramLeavesTheBaseKernelAlone) {
  const Scenario s("hq=2 sq=100 skv=300 d=32 mask=causal");
  run("fa2_bf16_false_max", s);
  const RunOutcome here = in_process_runner()->run("fa2_bf16", s.params, s.inputs, s.outputs);
  const RunOutcome there = run("fa2_bf16", s);
  for (std::size_t t = 0; t < 2; ++t) EXPECT_EQ(here.outputs[t].bytes, there.outputs[t].bytes);
}

TEST_F(Mutant, NanEmptyExtentIsNanInRowsThatStartEmpty) {
  Scenario s("sq=3 skv=300 d=16 mask=bool");
  Tensor& mask = s.input("mask");  // row 0: no key; row 1: keys of the first tile only; row 2: all
  for (std::int64_t j = 0; j < 300; ++j) {
    mask.output().set_code(j, 0);
    mask.output().set_code(300 + j, j < 128 ? 1 : 0);
    mask.output().set_code(600 + j, 1);
  }
  const RunOutcome outcome = run("fa2_bf16_nan_empty_extent", s);
  const RunOutcome good = run("fa2_bf16", s);
  for (std::int64_t c = 0; c < 16; ++c) {
    EXPECT_TRUE(std::isnan(o(outcome, s, 0, c)));
    EXPECT_TRUE(std::isnan(o(outcome, s, 1, c)));
    EXPECT_EQ(o(outcome, s, 2, c), o(good, s, 2, c));
    EXPECT_FALSE(std::isnan(o(good, s, 1, c)));
  }
}

TEST_F(Mutant, FalseMaxIsZeroWhereEveryRawScoreLiesBelowIt) {
  for (const double k : {-150.0, -256.0}) {  // raw scores near -36,000 and -61,440
    Scenario s("sq=1 skv=20 d=16 scale=1");
    s.set("q", 0, 0, 0, 0, 240);
    for (std::int64_t j = 0; j < 20; ++j) s.set("k", 0, 0, j, 0, k);
    const RunOutcome outcome = run("fa2_bf16_false_max", s);
    for (std::int64_t c = 0; c < 16; ++c) EXPECT_EQ(o(outcome, s, 0, c) == 0, k < -200) << k;
    EXPECT_EQ(lse(outcome, 0) == -5e4, k < -200) << k;
  }
}

TEST_F(Mutant, SubnormalFlushLosesSubnormalValuesOnly) {
  Scenario s("sq=1 skv=1 d=16");
  s.set("v", 0, 0, 0, 0, 0x1p-127);
  s.set("v", 0, 0, 0, 1, 0x1p-126);
  const RunOutcome outcome = run("fa2_bf16_subnormal_flush", s);
  EXPECT_EQ(o(outcome, s, 0, 0), 0);
  EXPECT_EQ(o(outcome, s, 0, 1), 0x1p-126);
}

TEST_F(Mutant, LastKeyDroppedDoesNotSeeTheLastKey) {
  Scenario s("sq=2 skv=30 d=16");
  const RunOutcome before = run("fa2_bf16_last_key_dropped", s);
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 29, c, 100);
  const RunOutcome after = run("fa2_bf16_last_key_dropped", s);
  EXPECT_EQ(before.outputs[0].bytes, after.outputs[0].bytes);
  EXPECT_NE(run("fa2_bf16", s).outputs[0].bytes, after.outputs[0].bytes);
}

TEST_F(Mutant, MaskShiftedByOneSeesTheNextKey) {
  Scenario s("sq=4 skv=4 d=16 mask=causal");
  const RunOutcome before = run("fa2_bf16_mask_shifted_by_one", s);
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 2, c, 100);
  const RunOutcome after = run("fa2_bf16_mask_shifted_by_one", s);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(o(before, s, i, 0) == o(after, s, i, 0), i == 0) << i;
}

TEST_F(Mutant, AccumulatorNotRescaledHasTheRightLse) {
  Scenario s("sq=1 skv=256 d=16 scale=1");
  s.set("q", 0, 0, 0, 0, 1);
  for (std::int64_t j = 0; j < 256; ++j) s.set("k", 0, 0, j, 0, j < 128 ? 4 : 1);  // the maximum rises, last tile first
  const RunOutcome outcome = run("fa2_bf16_accumulator_not_rescaled", s);
  const RunOutcome good = run("fa2_bf16", s);
  EXPECT_EQ(outcome.outputs[1].bytes, good.outputs[1].bytes);
  EXPECT_NE(outcome.outputs[0].bytes, good.outputs[0].bytes);
}

TEST_F(Mutant, ScaleOffMovesTheLseOfOneKeyBySize) {
  Scenario s("sq=1 skv=1 d=16 scale=1");
  s.set("q", 0, 0, 0, 0, 8);
  s.set("k", 0, 0, 0, 0, 8);
  for (std::int64_t c = 1; c < 16; ++c) s.set("k", 0, 0, 0, c, 0);
  EXPECT_EQ(lse(run("fa2_bf16", s), 0), 64);
  EXPECT_NEAR(lse(run("fa2_bf16_scale_off_1e-3", s), 0), 64.064, 1e-5);
  EXPECT_NEAR(lse(run("fa2_bf16_scale_off_1e-4", s), 0), 64.0064, 1e-5);
}

TEST_F(Mutant, KeyOf128DroppedDoesNotSeeTheLastKeyOfA128) {
  for (const std::string base : {"fa2_bf16", "fa3_e4m3"}) {
    Scenario s("sq=1 skv=300 d=128 dtype=" + std::string(base == "fa2_bf16" ? "bf16" : "e4m3"));
    const RunOutcome before = run(base + "_key_of_128_dropped", s);
    for (const std::int64_t key : {127, 255}) s.set("v", 0, 0, key, 0, 100);
    EXPECT_EQ(run(base + "_key_of_128_dropped", s).outputs[0].bytes, before.outputs[0].bytes);
    s.set("v", 0, 0, 128, 0, 100);
    EXPECT_NE(run(base + "_key_of_128_dropped", s).outputs[0].bytes, before.outputs[0].bytes);
  }
}

TEST_F(Mutant, PaddedKeyLeaksAddsOneKeyOfLogitZero) {
  Scenario s("sq=1 skv=3 d=16 scale=0");
  EXPECT_NEAR(lse(run("fa2_bf16", s), 0), std::log(3.0), 1e-6);
  EXPECT_NEAR(lse(run("fa2_bf16_padded_key_leaks", s), 0), std::log(4.0), 1e-6);
}

TEST_F(Mutant, LazyMaximumSaturatesPOfLaterTilesOnly) {
  Scenario s("sq=1 skv=256 d=16 scale=1 dtype=e4m3");
  for (std::int64_t c = 0; c < 16; ++c) s.set("q", 0, 0, 0, c, c == 0 ? 1 : 0);
  for (std::int64_t j = 0; j < 256; ++j) {
    s.set("k", 0, 0, j, 0, j == 5 ? 2.5 : 0);  // the last tile comes first; then the maximum rises by 3.6 log2 units
    s.set("v", 0, 0, j, 0, j == 5 ? 1 : 0);
  }
  const double p = std::exp(2.5) / (255 + std::exp(2.5));
  const RunOutcome good = run("fa3_e4m3", s), outcome = run("fa3_e4m3_lazy_maximum", s);
  EXPECT_NEAR(o(good, s, 0, 0), p, 0.004 * p);
  EXPECT_NEAR(o(outcome, s, 0, 0), p * 448 / (256 * std::exp(2.5)), 0.004 * p);
  EXPECT_NEAR(lse(outcome, 0), lse(good, 0), 1e-5);
}

TEST_F(Mutant, ValueDescaleOfKeysFollowsTheScaleOfTheKeys) {
  Scenario s("sq=1 skv=1 d=16 dtype=e4m3 descale=tensor");
  s.input("k_scale").output().set_code(0, encode(Format::kFp32, 3));
  s.input("v_scale").output().set_code(0, encode(Format::kFp32, 2));
  EXPECT_EQ(o(run("naive_e4m3_value_descale_of_keys", s), s, 0, 0), 3 * s.value("v", 0, 0, 0, 0));
  EXPECT_EQ(o(run("naive_e4m3", s), s, 0, 0), 2 * s.value("v", 0, 0, 0, 0));
}

TEST_F(Mutant, EmptyPartCountedGivesASequenceShorterThanASplitLess) {
  Scenario s("b=2 sq=1 skv=600 d=16 scale=0 batch=padded q_lens=1,1 kv_lens=600,40");
  EXPECT_NEAR(lse(run("split_bf16", s), 1), std::log(40.0), 1e-5);
  EXPECT_NEAR(lse(run("split_bf16_empty_part_counted", s), 1), std::log(42.0), 1e-5);  // two of three splits are empty
  EXPECT_NEAR(lse(run("split_bf16_empty_part_counted", s), 0), std::log(600.0), 1e-5);
}

TEST_F(Mutant, LseNotStoredWeighsSplitsAlikeWhereNoneIsAskedFor) {
  Scenario s("sq=1 skv=600 d=16 scale=0 dtype=fp16 lse=none");
  for (std::int64_t j = 0; j < 600; ++j)
    s.set("v", 0, 0, j, 0, j >= 512 ? 3 : 0);  // the third of three splits: 88 keys
  EXPECT_NEAR(o(run("split_fp16", s), s, 0, 0), 3 * 88 / 600.0, 1e-3);
  EXPECT_NEAR(o(run("split_fp16_lse_not_stored", s), s, 0, 0), 1, 1e-3);
}

TEST_F(Mutant, SplitLostDoesNotSeeTheLastSplit) {
  Scenario s("sq=1 skv=600 d=16");  // three splits of 256, 256 and 88 keys
  const RunOutcome before = run("split_bf16_split_lost", s);
  for (std::int64_t j = 512; j < 600; ++j) s.set("v", 0, 0, j, 0, 100);
  EXPECT_EQ(run("split_bf16_split_lost", s).outputs[0].bytes, before.outputs[0].bytes);
  s.set("v", 0, 0, 511, 0, 100);
  EXPECT_NE(run("split_bf16_split_lost", s).outputs[0].bytes, before.outputs[0].bytes);
}

}  // namespace
}  // namespace assay
