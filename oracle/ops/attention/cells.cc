// Coverage cells of an attention case, and the format that decides which kernels take it.
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/names.h"

namespace assay {
namespace {

/// Parts joined by +, or `none`.
class Joined {
 public:
  void add(std::string_view part) { text_ += (text_.empty() ? "" : "+") + std::string(part); }
  std::string text(std::string_view none) const { return text_.empty() ? std::string(none) : text_; }

 private:
  std::string text_;
};

template <class Enum, std::size_t kSize>
std::string_view name_of(Enum value, const std::array<std::string_view, kSize>& names) {
  return names.at(static_cast<std::size_t>(value));
}

/// What decides which keys a row sees.
std::string mask_cell(const AttentionParams& p) {
  Joined mask;
  if (p.causal) mask.add(p.align == Align::kTopLeft ? "causal_tl" : "causal");
  if (p.window_left >= 0 || p.window_right >= 0)
    mask.add(p.window_ends == WindowEnds::kLeftExclusive ? "window_left_exclusive" : "window");
  if (p.data_mask != DataMask::kNone) mask.add(name_of(p.data_mask, names::kDataMask));
  if (p.segments) mask.add("segments");
  return mask.text("none");
}

/// What changes logits and weights.
std::string option_cell(const AttentionParams& p) {
  Joined option;
  if (p.softcap > 0) option.add("softcap");
  if (p.alibi != Alibi::kNone) option.add("alibi_" + std::string(name_of(p.alibi, names::kAlibi)));
  if (p.sink != Sink::kNone) option.add("sink_" + std::string(name_of(p.sink, names::kSink)));
  return option.text("none");
}

/// How the batch lies in memory.
std::string layout_cell(const AttentionParams& p) {
  Joined layout;
  layout.add(p.batching == Batching::kDense ? name_of(p.layout, names::kLayout)
                                            : name_of(p.batching, names::kBatching));
  if (p.batching == Batching::kPadded && p.layout != Layout::kBhsd) layout.add(name_of(p.layout, names::kLayout));
  if (p.pad_rows > 0 || p.pad_dim > 0) layout.add("pad");
  if (p.offset > 0) layout.add("offset");
  if (p.expand_batch || p.expand_heads) layout.add("expand");
  return layout.text("");
}

/// Where keys and values lie; page sizes by class: one slot, below the usual 16, 16 to 64, above.
std::string kv_cell(const AttentionParams& p) {
  Joined kv;
  kv.add(name_of(p.kv_store, names::kKvStore));
  if (p.kv_store != KvStore::kContiguous)
    kv.add(p.page == 1 ? "page_1" : p.page < 16 ? "page_2..15" : p.page <= 64 ? "page_16..64" : "page_65..");
  if (p.prefix > 0) kv.add("prefix");
  if (p.v_in_k) kv.add("v_in_k");
  return kv.text("");
}

}  // namespace

Format attention_input_format(const Params& params) { return attention_params(params).input; }

std::map<std::string, std::string> attention_cells(const Params& params) {
  const AttentionParams p = attention_params(params);
  const std::int64_t residue = p.len_kv % 64;
  return {{"mask", mask_cell(p)},
          {"option", option_cell(p)},
          {"layout", layout_cell(p)},
          {"kv", kv_cell(p)},
          {"descale", std::string(name_of(p.descale, names::kDescale))},
          {"dtype", std::string(info(p.input).name)},
          {"residue", residue == 0    ? "0"
                      : residue == 1  ? "1"
                      : residue == 63 ? "63"
                      : residue < 32  ? "2..31"
                                      : "32..62"},
          {"length", p.len_kv >= 1024  ? ">=1024"
                     : p.len_kv >= 128 ? "128..1023"
                     : p.len_kv >= 16  ? "16..127"
                                       : "<16"}};
}

}  // namespace assay
