// Attention's parameters: parse, check, normalise; the layouts of its tensors.
#include "oracle/ops/attention/attention.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "oracle/error.h"
#include "oracle/ops/attention/layouts.h"

namespace assay {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;

[[noreturn]] void bad(std::string_view key, std::string_view value, std::string_view why) {
  throw InputError("case: attention " + std::string(key) + "=" + std::string(value) + ": " + std::string(why));
}

std::int64_t integer(std::string_view key, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) bad(key, text, "not an integer");
  if (value < low || value > high)
    bad(key, text, "must lie in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return value;
}

std::vector<std::int64_t> integers(std::string_view key, std::string_view text, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> values;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(integer(key, text.substr(begin, end - begin), low, high));
    if (end == text.size()) return values;
    begin = end + 1;
  }
}

template <class Enum, std::size_t kSize>
Enum choice(std::string_view key, std::string_view text, const std::array<std::string_view, kSize>& names) {
  for (std::size_t i = 0; i < kSize; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  std::string list;
  for (std::string_view name : names) list += (list.empty() ? "" : "|") + std::string(name);
  bad(key, text, "must be one of " + list);
}

Format float_format(std::string_view key, std::string_view text) {
  const std::optional<Format> format = format_from_name(text);
  if (!format || (*format != Format::kFp32 && *format != Format::kFp16 && *format != Format::kBf16))
    bad(key, text, "must be fp32, fp16 or bf16");
  return *format;
}

/// The value of a key, or its default.
class Reader {
 public:
  explicit Reader(const Params& params) : params_(params) {
    for (const auto& [key, value] : params.items) {
      bool known = false;
      for (const ParamInfo& info : kAttentionParams) known = known || info.key == key;
      if (!known) bad(key, value, "unknown parameter");
    }
  }
  const std::string* given(std::string_view key) const { return params_.find(key); }
  std::string_view text(std::string_view key) const {
    if (const std::string* value = params_.find(key)) return *value;
    for (const ParamInfo& info : kAttentionParams)
      if (info.key == key) return info.default_value;
    return {};
  }
  std::int64_t count(std::string_view key, std::int64_t low, std::int64_t fallback = 1) const {
    return given(key) ? integer(key, *given(key), low, kMaxExtent) : fallback;
  }

 private:
  const Params& params_;
};

void read_mask(std::string_view text, AttentionParams& p) {
  std::string_view rest = text;
  while (!rest.empty() && text != "none") {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (part == "causal" && !p.causal) p.causal = true;
    else if (part == "bool" && p.data_mask == DataMask::kNone) p.data_mask = DataMask::kBool;
    else if (part == "additive" && p.data_mask == DataMask::kNone) p.data_mask = DataMask::kAdditive;
    else bad("mask", text, "must be none, causal, bool, additive, causal+bool or causal+additive");
    if (end == rest.size()) break;
    rest = rest.substr(end + 1);
    if (rest.empty()) bad("mask", text, "ends with +");
  }
}

std::string shortest(float value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

float default_scale(std::int64_t dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))); }

std::string joined(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

void read_lengths(const Reader& in, AttentionParams& p) {
  constexpr std::array<std::string_view, 3> kBatchings{"dense", "packed", "padded"};
  p.batching = choice<Batching>("batch", in.text("batch"), kBatchings);
  for (const auto& [key, lens, longest] : {std::tuple{std::string_view("q_lens"), &p.lens_q, p.len_q},
                                           std::tuple{std::string_view("kv_lens"), &p.lens_kv, p.len_kv}}) {
    const std::string* text = in.given(key);
    if (p.batching == Batching::kDense) {
      if (text) bad(key, *text, "lengths need batch=packed or batch=padded");
      continue;
    }
    if (!text) {
      lens->assign(static_cast<std::size_t>(p.batch), longest);
      continue;
    }
    *lens = integers(key, *text, 0, longest);
    if (lens->size() != static_cast<std::size_t>(p.batch)) bad(key, *text, "needs one length per batch entry");
  }
}

}  // namespace

AttentionParams attention_params(const Params& params) {
  const Reader in(params);
  AttentionParams p;
  p.batch = in.count("b", 1);
  constexpr std::int64_t kMaxBatch = 65536;
  if (p.batch > kMaxBatch) bad("b", std::to_string(p.batch), "at most " + std::to_string(kMaxBatch) + " sequences");
  p.heads_q = in.count("hq", 1);
  p.heads_kv = in.count("hkv", 1, p.heads_q);
  if (p.heads_q % p.heads_kv != 0) bad("hkv", std::to_string(p.heads_kv), "must divide hq=" + std::to_string(p.heads_q));
  p.len_q = in.count("sq", 0);
  p.len_kv = in.count("skv", 0, p.len_q);
  p.dim_qk = in.count("d", 1, 64);
  p.dim_v = in.count("dv", 1, p.dim_qk);
  p.input = float_format("dtype", in.text("dtype"));
  p.output = in.given("out") ? float_format("out", *in.given("out")) : p.input;
  p.scale = default_scale(p.dim_qk);
  if (const std::string* text = in.given("scale")) {
    const auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), p.scale);
    if (status != std::errc{} || end != text->data() + text->size() || !(std::abs(p.scale) <= 3.4028235e38F))
      bad("scale", *text, "must be a finite fp32 number");
  }
  read_mask(in.text("mask"), p);
  p.align = choice<Align>("align", in.text("align"), std::array<std::string_view, 2>{"br", "tl"});
  if (const std::string* text = in.given("window")) {
    const std::vector<std::int64_t> ends = integers("window", *text, -1, kMaxExtent);
    if (ends.size() != 2) bad("window", *text, "must be left,right");
    p.window_left = ends[0];
    p.window_right = ends[1];
  }
  p.window_ends = choice<WindowEnds>("window_ends", in.text("window_ends"),
                                     std::array<std::string_view, 2>{"inclusive", "left_exclusive"});
  p.empty_output = choice<EmptyOutput>("empty", in.text("empty"), std::array<std::string_view, 3>{"zero", "nan", "mean"});
  p.empty_lse = choice<EmptyLse>("empty_lse", in.text("empty_lse"), std::array<std::string_view, 2>{"-inf", "inf"});
  p.lse = choice<LseBase>("lse", in.text("lse"), std::array<std::string_view, 3>{"none", "e", "2"});
  p.masked_nonfinite = choice<MaskedNonfinite>("masked_nonfinite", in.text("masked_nonfinite"),
                                               std::array<std::string_view, 2>{"ignored", "propagates"});
  read_lengths(in, p);
  p.layout = choice<Layout>("layout", in.text("layout"), std::array<std::string_view, 2>{"bhsd", "bshd"});
  if (p.batching == Batching::kPacked && p.layout != Layout::kBhsd)
    bad("layout", in.text("layout"), "packed batches have one layout, [token, head, dim]; leave it out");
  p.pad_rows = in.count("pad_rows", 0, 0);
  p.pad_dim = in.count("pad_dim", 0, 0);
  p.sampled_rows = in.count("rows", 0, 0);
  constexpr std::int64_t kMaxSampledRows = 65536;
  if (p.sampled_rows > kMaxSampledRows)
    bad("rows", std::to_string(p.sampled_rows), "at most " + std::to_string(kMaxSampledRows) + " rows can be sampled");
  p.rows_seed = in.count("rows_seed", 0, 0);
  const std::int64_t per_head = (p.len_q + p.pad_rows) * (std::max(p.dim_qk, p.dim_v) + p.pad_dim);
  const std::int64_t per_head_kv = (p.len_kv + p.pad_rows) * (std::max(p.dim_qk, p.dim_v) + p.pad_dim);
  constexpr double kMaxElements = 4294967296.0;
  const double heads = static_cast<double>(p.batch) * static_cast<double>(p.heads_q);
  if (heads * static_cast<double>(std::max(per_head, per_head_kv)) > kMaxElements)
    bad("b", std::to_string(p.batch), "a tensor of this case would pass 2^32 elements");
  if (p.data_mask != DataMask::kNone &&
      heads * static_cast<double>(p.len_q) * static_cast<double>(p.len_kv) > kMaxElements)
    bad("mask", in.text("mask"), "the mask of this case would pass 2^32 elements");
  return p;
}

Params canonical_attention(const Params& params) {
  const AttentionParams p = attention_params(params);
  Params out;
  for (const ParamInfo& info : kAttentionParams) {
    const std::string* text = params.find(info.key);
    if (text == nullptr || *text == info.default_value) continue;
    out.set(info.key, *text);
  }
  // Fields whose default depends on others, or which have several spellings.
  const auto number = [&](std::string_view key, std::int64_t value, std::int64_t fallback) {
    if (!params.find(key)) return;
    out.erase(key);
    if (value != fallback) out.set(key, std::to_string(value));
  };
  number("b", p.batch, 1);
  number("hq", p.heads_q, 1);
  number("hkv", p.heads_kv, p.heads_q);
  number("sq", p.len_q, 1);
  number("skv", p.len_kv, p.len_q);
  number("d", p.dim_qk, 64);
  number("dv", p.dim_v, p.dim_qk);
  number("pad_rows", p.pad_rows, 0);
  number("pad_dim", p.pad_dim, 0);
  number("rows", p.sampled_rows, 0);
  number("rows_seed", p.sampled_rows > 0 ? p.rows_seed : 0, 0);
  if (p.output == p.input) out.erase("out");
  if (params.find("scale")) {
    out.erase("scale");
    if (std::bit_cast<std::uint32_t>(p.scale) != std::bit_cast<std::uint32_t>(default_scale(p.dim_qk)))
      out.set("scale", shortest(p.scale));
  }
  if (params.find("mask")) {
    out.erase("mask");
    std::string mask = p.causal ? "causal" : "";
    if (p.data_mask != DataMask::kNone)
      mask += std::string(p.causal ? "+" : "") + (p.data_mask == DataMask::kBool ? "bool" : "additive");
    if (!mask.empty()) out.set("mask", mask);
  }
  out.erase("window");
  if (p.window_left >= 0 || p.window_right >= 0) out.set("window", joined({p.window_left, p.window_right}));
  for (const auto& [key, lens, longest] : {std::tuple{std::string_view("q_lens"), &p.lens_q, p.len_q},
                                           std::tuple{std::string_view("kv_lens"), &p.lens_kv, p.len_kv}}) {
    out.erase(key);
    const std::vector<std::int64_t> all(lens->size(), longest);
    if (*lens != all) out.set(key, joined(*lens));
  }
  Params ordered;
  for (const ParamInfo& info : kAttentionParams)
    if (const std::string* text = out.find(info.key)) ordered.set(info.key, *text);
  return ordered;
}

}  // namespace assay
