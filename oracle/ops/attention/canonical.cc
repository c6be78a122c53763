// Attention's parameters as canonical text: one spelling, defaults left out.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "oracle/ops/attention/defaults.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/names.h"

namespace assay {
namespace {

std::string shortest(float value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string joined(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

/// Empty where every sequence has the default length.
std::string lengths(const std::vector<std::int64_t>& lens, std::int64_t longest) {
  const bool all = std::all_of(lens.begin(), lens.end(), [&](std::int64_t len) { return len == longest; });
  return all ? "" : joined(lens);
}

std::string mask_name(const AttentionParams& p) {
  const std::string data(names::kDataMask[static_cast<std::size_t>(p.data_mask)]);
  if (!p.causal) return data;
  return p.data_mask == DataMask::kNone ? "causal" : "causal+" + data;
}

}  // namespace

Params canonical_attention(const Params& params) {
  const AttentionParams p = attention_params(params);
  Params out;
  const auto text = [&](std::string_view key, std::string value, std::string_view fallback) {
    if (value != fallback) out.set(key, std::move(value));
  };
  const auto number = [&](std::string_view key, std::int64_t value, std::int64_t fallback) {
    text(key, std::to_string(value), std::to_string(fallback));
  };
  const auto name = [&](std::string_view key, const auto& all, auto value) {
    const std::string_view fallback =
        std::find_if(kAttentionParams.begin(), kAttentionParams.end(), [&](const auto& i) {
          return i.key == key;
        })->default_value;
    text(key, std::string(all[static_cast<std::size_t>(value)]), fallback);
  };
  number("b", p.batch, 1);
  number("hq", p.heads_q, 1);
  number("hkv", p.heads_kv, p.heads_q);
  number("sq", p.len_q, 1);
  number("skv", p.len_kv, p.len_q);
  number("d", p.dim_qk, 64);
  number("dv", p.dim_v, p.dim_qk);
  text("dtype", std::string(info(p.input).name), "bf16");
  text("out", std::string(info(p.output).name), info(default_output(p.input)).name);
  text("scale", shortest(p.scale), shortest(default_scale(p.dim_qk)));
  text("mask", mask_name(p), "none");
  text("block", joined({p.block_q, p.block_kv}), "64,64");
  number("list", p.list_len, 64);
  text("softcap", shortest(p.softcap), "0");
  name("alibi", names::kAlibi, p.alibi);
  name("slopes", names::kSlopes, p.slopes_per_batch);
  name("sink", names::kSink, p.sink);
  number("segments", p.segments ? 1 : 0, 0);
  name("descale", names::kDescale, p.descale);
  number("scale_block", p.scale_block, 128);
  name("align", names::kAlign, p.align);
  text("window", p.window_left >= 0 || p.window_right >= 0 ? joined({p.window_left, p.window_right}) : "", "");
  name("window_ends", names::kWindowEnds, p.window_ends);
  name("empty", names::kEmptyOutput, p.empty_output);
  name("empty_lse", names::kEmptyLse, p.empty_lse);
  name("lse", names::kLseBase, p.lse);
  name("masked_nonfinite", names::kMaskedNonfinite, p.masked_nonfinite);
  name("batch", names::kBatching, p.batching);
  text("q_lens", lengths(p.lens_q, p.len_q), "");
  text("kv_lens", lengths(p.lens_kv, p.len_kv), "");
  name("layout", names::kLayout, p.layout);
  number("offset", p.offset, 0);
  name("expand", names::kExpand, p.expand_batch ? 1 : p.expand_heads ? 2 : 0);
  name("v_from", names::kVFrom, p.v_in_k);
  number("prefix", p.prefix, 0);
  name("kv", names::kKvStore, p.kv_store);
  number("page", p.page, 16);
  number("page_seed", p.page_seed, 0);
  number("spare_pages", p.spare_pages, 0);
  name("table_pad", names::kTablePad, p.table_pad);
  number("pad_rows", p.pad_rows, 0);
  number("pad_dim", p.pad_dim, 0);
  number("rows", p.sampled_rows, 0);
  number("rows_seed", p.sampled_rows > 0 ? p.rows_seed : 0, 0);
  return out;
}

}  // namespace assay
