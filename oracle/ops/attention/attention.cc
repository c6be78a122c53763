// Attention's parameters from text: parse and check.
#include "oracle/ops/attention/attention.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "oracle/error.h"
#include "oracle/ops/attention/defaults.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/names.h"

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

Format float_format(std::string_view key, std::string_view text, bool eight_bits) {
  const std::optional<Format> format = format_from_name(text);
  if (format == Format::kFp32 || format == Format::kFp16 || format == Format::kBf16) return *format;
  if (eight_bits && (format == Format::kE4m3 || format == Format::kE5m2)) return *format;
  bad(key, text, eight_bits ? "must be fp32, fp16, bf16, e4m3 or e5m2" : "must be fp32, fp16 or bf16");
}

float fp32_number(std::string_view key, std::string_view text) {
  float value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !(std::abs(value) <= 3.4028235e38F))
    bad(key, text, "must be a finite fp32 number");
  return value;
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
  template <class Enum, std::size_t kSize>
  Enum one_of(std::string_view key, const std::array<std::string_view, kSize>& names) const {
    return choice<Enum>(key, text(key), names);
  }
  /// A key that says something about another option has no place without it.
  void needs(std::string_view key, bool has, std::string_view what) const {
    if (given(key) && !has) bad(key, *given(key), "needs " + std::string(what));
  }

 private:
  const Params& params_;
};

void read_mask(const Reader& in, AttentionParams& p) {
  const std::string_view text = in.text("mask");
  std::string_view rest = text;
  while (!rest.empty() && text != "none") {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const std::string_view part = rest.substr(0, end);
    const auto data = std::find(names::kDataMask.begin() + 1, names::kDataMask.end(), part);
    if (part == "causal" && !p.causal)
      p.causal = true;
    else if (data != names::kDataMask.end() && p.data_mask == DataMask::kNone)
      p.data_mask = static_cast<DataMask>(data - names::kDataMask.begin());
    else
      bad("mask", text, "must be none, causal, bool, additive, block, list, or causal+ one of the last four");
    if (end == rest.size()) break;
    rest = rest.substr(end + 1);
    if (rest.empty()) bad("mask", text, "ends with +");
  }
  in.needs("block", p.data_mask == DataMask::kBlock, "mask=block");
  in.needs("list", p.data_mask == DataMask::kList, "mask=list");
  const std::vector<std::int64_t> block = integers("block", in.text("block"), 1, kMaxExtent);
  if (block.size() != 2) bad("block", in.text("block"), "must be queries,keys");
  p.block_q = block[0];
  p.block_kv = block[1];
  p.list_len = in.count("list", 1, p.list_len);
  p.align = in.one_of<Align>("align", names::kAlign);
  if (const std::string* window = in.given("window")) {
    const std::vector<std::int64_t> ends = integers("window", *window, -1, kMaxExtent);
    if (ends.size() != 2) bad("window", *window, "must be left,right");
    p.window_left = ends[0];
    p.window_right = ends[1];
  }
  p.window_ends = in.one_of<WindowEnds>("window_ends", names::kWindowEnds);
  p.segments = integer("segments", in.text("segments"), 0, 1) == 1;
}

/// What changes logits and weights besides masks.
void read_logits(const Reader& in, AttentionParams& p) {
  p.scale = in.given("scale") ? fp32_number("scale", *in.given("scale")) : default_scale(p.dim_qk);
  p.softcap = fp32_number("softcap", in.text("softcap"));
  if (p.softcap < 0) bad("softcap", in.text("softcap"), "must be 0 (none) or above");
  if (p.softcap == 0) p.softcap = 0;  // -0 too
  p.alibi = in.one_of<Alibi>("alibi", names::kAlibi);
  in.needs("slopes", p.alibi != Alibi::kNone, "alibi");
  p.slopes_per_batch = in.text("slopes") == names::kSlopes[1];
  in.one_of<bool>("slopes", names::kSlopes);
  p.sink = in.one_of<Sink>("sink", names::kSink);
  p.descale = in.one_of<Descale>("descale", names::kDescale);
  in.needs("scale_block", p.descale == Descale::kBlock, "descale=block");
  p.scale_block = in.count("scale_block", 1, p.scale_block);
}

void read_store(const Reader& in, AttentionParams& p) {
  p.batching = in.one_of<Batching>("batch", names::kBatching);
  const bool dense = p.batching == Batching::kDense, packed = p.batching == Batching::kPacked;
  p.kv_store = in.one_of<KvStore>("kv", names::kKvStore);
  const bool paged = p.kv_store != KvStore::kContiguous;
  for (const std::string_view key : {"page", "page_seed", "spare_pages", "table_pad"})
    in.needs(key, paged, "a paged kv");
  p.page = integer("page", in.text("page"), 1, 1024);
  p.page_seed = in.count("page_seed", 0, 0);
  p.spare_pages = in.count("spare_pages", 0, 0);
  p.table_pad = in.one_of<TablePad>("table_pad", names::kTablePad);
  if (const std::int64_t x = 16 / bytes_per_element(p.input); p.kv_store == KvStore::kVllmX && p.dim_qk % x != 0)
    bad("d", std::to_string(p.dim_qk), "kv=vllm_x needs a multiple of " + std::to_string(x) + " (16 bytes)");

  p.layout = in.one_of<Layout>("layout", names::kLayout);
  if (packed && p.layout != Layout::kBhsd)
    bad("layout", in.text("layout"), "packed batches have one layout, [token, head, dim]; leave it out");
  if (p.layout == Layout::kBhds && paged) bad("layout", in.text("layout"), "needs kv=contiguous");
  p.offset = in.count("offset", 0, 0);
  in.one_of<std::int64_t>("expand", names::kExpand);
  p.expand_batch = in.text("expand") == "batch";
  p.expand_heads = in.text("expand") == "heads";
  if ((p.expand_batch || p.expand_heads) && (!dense || paged))
    bad("expand", in.text("expand"), "needs batch=dense and kv=contiguous");
  p.v_in_k = in.one_of<bool>("v_from", names::kVFrom);
  if (p.v_in_k && p.dim_v > p.dim_qk)
    bad("dv", std::to_string(p.dim_v), "v_from=k needs at most d=" + std::to_string(p.dim_qk));
  p.pad_rows = in.count("pad_rows", 0, 0);
  p.pad_dim = in.count("pad_dim", 0, 0);

  const auto lengths = [&](std::string_view key, bool ragged, std::int64_t longest, std::vector<std::int64_t>& lens) {
    const std::string* text = in.given(key);
    if (!ragged) {
      if (text)
        bad(key, *text,
            key == "q_lens" ? "lengths need batch=packed or batch=padded"
                            : "lengths need batch=packed, batch=padded or a paged kv");
      return;
    }
    lens.assign(static_cast<std::size_t>(p.batch), longest);
    if (text == nullptr) return;
    lens = integers(key, *text, 0, longest);
    if (lens.size() != static_cast<std::size_t>(p.batch)) bad(key, *text, "needs one length per batch entry");
  };
  lengths("q_lens", !dense, p.len_q, p.lens_q);
  lengths("kv_lens", !dense || paged, p.len_kv, p.lens_kv);

  p.prefix = in.count("prefix", 0, 0);
  std::int64_t shortest = p.len_kv;
  for (std::int64_t len : p.lens_kv) shortest = std::min(shortest, len);
  if (p.prefix > shortest)
    bad("prefix", std::to_string(p.prefix), "longer than a sequence of " + std::to_string(shortest) + " keys");
  if (paged && p.prefix % p.page != 0)
    bad("prefix", std::to_string(p.prefix), "must be a multiple of page=" + std::to_string(p.page));
}

void check_sizes(const Reader& in, const AttentionParams& p) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  constexpr double kMaxElements = 4294967296.0, kMaxTable = 67108864.0;
  const double vector = number(std::max(p.dim_qk, p.dim_v) + p.pad_dim);
  const double heads = number(p.batch) * number(p.heads_q);
  if (heads * number(std::max(p.len_q, p.len_kv) + p.pad_rows) * vector > kMaxElements)
    bad("b", std::to_string(p.batch), "a tensor of this case would pass 2^32 elements");
  if (p.kv_store != KvStore::kContiguous) {
    const double pages = number(p.batch) * number(p.len_kv / p.page + 1) + number(p.spare_pages);
    if (pages > kMaxTable) bad("page", in.text("page"), "the case would pass 2^26 pages");
    if (pages * number(p.page) * number(p.heads_kv) * vector > kMaxElements)
      bad("page", in.text("page"), "the pages of this case would pass 2^32 elements");
  }
  const double keys = p.data_mask == DataMask::kList ? number(p.list_len) : number(p.len_kv);
  if (p.data_mask != DataMask::kNone && heads * number(p.len_q) * keys > kMaxElements)
    bad("mask", in.text("mask"), "the mask of this case would pass 2^32 elements");
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
  if (p.heads_q % p.heads_kv != 0)
    bad("hkv", std::to_string(p.heads_kv), "must divide hq=" + std::to_string(p.heads_q));
  p.len_q = in.count("sq", 0);
  p.len_kv = in.count("skv", 0, p.len_q);
  p.dim_qk = in.count("d", 1, 64);
  p.dim_v = in.count("dv", 1, p.dim_qk);
  p.input = float_format("dtype", in.text("dtype"), true);
  p.output = in.given("out") ? float_format("out", *in.given("out"), false) : default_output(p.input);
  read_logits(in, p);
  read_mask(in, p);
  p.empty_output = in.one_of<EmptyOutput>("empty", names::kEmptyOutput);
  p.empty_lse = in.one_of<EmptyLse>("empty_lse", names::kEmptyLse);
  p.lse = in.one_of<LseBase>("lse", names::kLseBase);
  p.masked_nonfinite = in.one_of<MaskedNonfinite>("masked_nonfinite", names::kMaskedNonfinite);
  read_store(in, p);
  p.sampled_rows = in.count("rows", 0, 0);
  constexpr std::int64_t kMaxSampledRows = 65536;
  if (p.sampled_rows > kMaxSampledRows)
    bad("rows", std::to_string(p.sampled_rows), "at most " + std::to_string(kMaxSampledRows) + " rows can be sampled");
  p.rows_seed = in.count("rows_seed", 0, 0);
  check_sizes(in, p);
  return p;
}

}  // namespace assay
