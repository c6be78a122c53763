// Attention's parameters as text: canonical (one spelling, defaults left out), and complete with all defaults.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "oracle/op_parameters.h"
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

std::vector<std::string_view> mask_names() {
  return {"none", "causal", "bool", "additive", "block", "list", "causal+bool", "causal+additive", "causal+block",
          "causal+list"};
}

Params as_text(const AttentionParams& p, bool defaults) {
  Params out;
  const auto text = [&](std::string_view key, std::string value, std::string_view fallback) {
    if (defaults ? !value.empty() : value != fallback) out.set(key, std::move(value));
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
  text("window", joined({p.window_left, p.window_right}), "-1,-1");
  name("window_ends", names::kWindowEnds, p.window_ends);
  name("empty", names::kEmptyOutput, p.empty_output);
  name("empty_lse", names::kEmptyLse, p.empty_lse);
  name("lse", names::kLseBase, p.lse);
  name("masked_nonfinite", names::kMaskedNonfinite, p.masked_nonfinite);
  name("batch", names::kBatching, p.batching);
  text("q_lens", defaults ? joined(p.lens_q) : lengths(p.lens_q, p.len_q), "");
  text("kv_lens", defaults ? joined(p.lens_kv) : lengths(p.lens_kv, p.len_kv), "");
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

Params complete_attention(const Params& params) { return as_text(attention_params(params), true); }

template <std::size_t kSize>
ParamNames choice(std::string_view key, const std::array<std::string_view, kSize>& all) {
  return {key, {all.begin(), all.end()}};
}

const RegisterOpParameters kParameters({
    .op = "attention",
    .complete = complete_attention,
    .named = {{"out", {"fp32", "fp16", "bf16"}},
              {"mask", mask_names()},
              choice("alibi", names::kAlibi),
              choice("slopes", names::kSlopes),
              choice("sink", names::kSink),
              choice("descale", names::kDescale),
              choice("align", names::kAlign),
              choice("window_ends", names::kWindowEnds),
              choice("empty", names::kEmptyOutput),
              choice("empty_lse", names::kEmptyLse),
              choice("lse", names::kLseBase),
              choice("masked_nonfinite", names::kMaskedNonfinite),
              choice("batch", names::kBatching),
              choice("layout", names::kLayout),
              choice("expand", names::kExpand),
              choice("v_from", names::kVFrom),
              choice("kv", names::kKvStore),
              choice("table_pad", names::kTablePad)},
    .format_key = "dtype",
    .for_the_judge = {"rows", "rows_seed"},
});

}  // namespace

Params canonical_attention(const Params& params) { return as_text(attention_params(params), false); }

}  // namespace assay
