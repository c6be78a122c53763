// What the suites edge and adversarial combine for attention.
#include <fmt/format.h>

#include <array>
#include <map>

#include "fuzz/pairwise.h"

namespace assay {
namespace {

const Levels kMasks{
    "",
    "mask=causal",
    "mask=causal align=tl",
    "mask=causal window=16,-1",
    "window=8,8",
    "window=24,0 window_ends=left_exclusive",
    "mask=bool mask.data=keep(0.75)@{s}",
    "mask=bool mask.data=empty_rows(3)@{s}",
    "mask=bool mask.data=block(16,64,0.5)@{s}",
    "mask=additive mask.data=bias(1)@{s}",
    "mask=additive mask.data=neg_inf(0.25)@{s}",
    "mask=causal+bool mask.data=keep(0.5)@{s}",
    "mask=causal+additive mask.data=bias(2)@{s}",
    "mask=block block=4,32 mask.data=keep(0.6)@{s}",
    "mask=causal+block block=2,16 mask.data=keep(0.7)@{s}",
    "mask=list list=48 mask.data=indices({skv},0.2)@{s}",
    "mask=causal+list list=200 mask.data=indices({skv},0.1)@{s}",
    "segments=1",
    "mask=causal segments=1 seg_q=segments(5) seg_kv=segments(40)",
};
const Levels kLayouts{"",
                      "layout=bshd",
                      "batch=packed {lens}",
                      "batch=padded {lens}",
                      "pad_rows=3 pad_dim=8",
                      "layout=bshd pad_dim=4 pad_rows=1",
                      "layout=bhds",
                      "offset=5",
                      "batch=packed {lens} offset=1 pad_dim=3",
                      "expand=batch",
                      "layout=bshd expand=heads",
                      "v_from=k",
                      "batch=packed {lens} v_from=k"};
const Levels kDtypes{"dtype=bf16", "dtype=fp16", "dtype=bf16",         "dtype=fp16",
                     "dtype=fp32", "dtype=e4m3", "dtype=e5m2 out=fp16"};
// Key lengths around the tile edges; the long ones come with few queries, so that a case stays in the milliseconds.
const Levels kLengths{"sq=1 skv=1",    "sq=5 skv=2",    "sq=3 skv=15",   "sq=17 skv=16",  "sq=2 skv=17",
                      "sq=33 skv=33",  "sq=9 skv=63",   "sq=16 skv=64",  "sq=4 skv=65",   "sq=12 skv=127",
                      "sq=2 skv=128",  "sq=7 skv=129",  "sq=1 skv=200",  "sq=6 skv=255",  "sq=3 skv=256",
                      "sq=5 skv=257",  "sq=2 skv=511",  "sq=1 skv=1024", "sq=3 skv=1025", "sq=2 skv=1087",
                      "sq=4 skv=1151", "sq=1 skv=1600", "sq=2 skv=2048", "sq=70 skv=100", "sq=1 skv=1344",
                      "sq=2 skv=1535"};
const Levels kHeads{"b=1 hq=1", "b=2 hq=2", "b=1 hq=4 hkv=2", "b=2 hq=4 hkv=1", "b=1 hq=3 hkv=1", "b=1 hq=6 hkv=2"};
const Levels kDims{"d=64",       "d=32",       "d=128", "d=16", "d=40",         "d=8",
                   "d=64 dv=32", "d=32 dv=80", "d=96",  "d=24", "d=192 dv=128", "d=576 dv=512"};
const Levels kLse{"", "lse=2", "", "lse=none"};
const Levels kScales{"", "", "scale=0.5", "scale=0.03", "scale=-0.125", "scale=0"};
const Levels kEmpty{"", "empty=nan", "empty=mean", "empty_lse=inf"};
const Levels kPoisons{"", "poison=inf", "poison=max", "poison=tag", "poison=zero"};
const Levels kOptions{"",
                      "",
                      "",
                      "softcap=30",
                      "softcap=0.5",
                      "alibi=distance",
                      "alibi=key slopes.data=slopes(1)",
                      "alibi=diagonal slopes=batch_head slopes.data=uniform(-0.2,0.5)@{s}",
                      "alibi=last",
                      "sink=in_lse",
                      "sink=out_of_lse sink.data=normal(3,2)@{s}",
                      "sink=in_lse sink.data=constant(40)",
                      "softcap=8 alibi=key sink=in_lse"};
const Levels kFactors{"",
                      "",
                      "",
                      "descale=tensor",
                      "descale=head",
                      "descale=block scale_block=16",
                      "descale=head k_scale=uniform(0.01,0.02)@{s} v_scale=uniform(20,50)@{s}"};
const Levels kStores{"",
                     "",
                     "",
                     "prefix={prefix}",
                     "kv=vllm page=16 page_seed=1 spare_pages=2 table_pad=minus_one {kv_lens}",
                     "kv=vllm page=1 page_seed=2 table_pad=huge",
                     "kv=vllm page=64 page_seed=3 table_pad=shared prefix={prefix}",
                     "kv=vllm_x page=16 page_seed=4 table_pad=huge {kv_lens}",
                     "kv=vllm_x page=128 table_pad=shared",
                     "kv=nhd page=1 page_seed=5 spare_pages=3",
                     "kv=nhd page=16 page_seed=6 table_pad=minus_one prefix={prefix} {kv_lens}",
                     "kv=hnd page=7 page_seed=7 table_pad=huge",
                     "kv=hnd page=1024 spare_pages=1 {kv_lens}"};

const Levels kEdgeRecipes{
    "q=normal@{s} k=normal@{s} v=normal@{s}",
    "q=small_integers(3)@{s} k=small_integers(3)@{s} v=small_integers(8)@{s}",
    "q=normal@{s} k=normal@{s} v=tags",
    "q=one_hot@{s} k=normal(2)@{s} v=normal@{s}",
    "q=uniform@{s} k=uniform(-2,2)@{s} v=uniform(-1,1)@{s}",
    "q=normal@{s} k=normal@{s} v=ones",
};

const Levels kAdversarialRecipes{
    "q=normal@{s} k=normal@{s} v=normal@{s}",
    "q=normal(4)@{s} k=normal(4)@{s} v=normal@{s}",
    "q=normal(30)@{s} k=normal@{s} v=normal@{s}",
    "q=normal@{s} k=normal@{s} v=normal(1,2)@{s}",
    "q=uniform@{s} k=uniform@{s} v=uniform(0,1)@{s}",
    "q=normal@{s} k=constant(0.5) v=normal@{s}",
    "q=normal@{s} k=normal@{s} v=ones",
    "q=one_hot(8)@{s} k=normal@{s} v=normal@{s}",
    "q=small_integers(3)@{s} k=small_integers(3)@{s} v=small_integers(8)@{s}",
    "q=normal@{s} k=ties@{s} v=normal@{s}",
    "q=normal@{s} k=ties@{s} v=same_sign@{s}",
    "q=normal@{s} k=near_ties@{s} v=normal@{s}",
    "q=probe@{s} k=rising(4,64)@{s} v=normal@{s}",
    "q=probe@{s} k=rising(1,16)@{s} v=same_sign@{s}",
    "q=probe@{s} k=falling(4,64)@{s} v=normal@{s}",
    "q=probe@{s} k=falling(0.5,32)@{s} v=normal@{s}",
    "q=normal@{s} k=outlier_channel(30)@{s} v=normal@{s}",
    "q=outlier_channel(20)@{s} k=outlier_channel(20)@{s} v=outlier_channel(50)@{s}",
    "q=probe@{s} k=attention_sink(10,1)@{s} v=normal@{s}",
    "q=probe@{s} k=attention_sink(8,4)@{s} v=sink_values@{s}",
    "q=normal@{s} k=massive(60)@{s} v=massive(400)@{s}",
    "q=probe@{s} k=logit_offset(-20)@{s} v=normal@{s}",
    "q=probe@{s} k=logit_offset(-60)@{s} v=normal@{s}",
    "q=probe@{s} k=logit_offset(-1000)@{s} v=normal@{s}",
    "q=probe@{s} k=logit_offset(-50000)@{s} v=normal@{s}",
    "q=probe@{s} k=logit_ladder@{s} v=normal@{s}",
    "q=probe@{s} k=logit_ladder(-3,8,-1)@{s} v=normal@{s}",
    "q=normal@{s} k=normal@{s} v=subnormal@{s}",
    "q=normal@{s} k=subnormal@{s} v=normal@{s}",
    "q=normal@{s} k=normal@{s} v=subnormal(0.5)@{s}",
    "q=mixed_exponents@{s} k=mixed_exponents@{s} v=mixed_exponents@{s}",
    "q=normal@{s} k=normal@{s} v=cancelling_pairs@{s}",
    "q=twin_channels@{s} k=cancelling_channels@{s} v=normal@{s}",
    "q=normal@{s} k=normal@{s} v=same_sign@{s}",
    "q=same_sign@{s} k=same_sign@{s} v=same_sign(-1)@{s}",
    "q=normal@{s} k=normal@{s} v=tags",
    "q=probe@{s} k=range_ladder@{s} v=normal@{s}",
    "q=range_exponents@{s} k=range_exponents@{s} v=normal@{s}",
};

/// Paged keys have no views, and values inside keys no recipe of their own.
bool excludes(const std::string& a, const std::string& b) {
  const auto has = [](const std::string& level, std::string_view word) {
    return level.find(word) != std::string::npos;
  };
  const auto one_way = [&](const std::string& layout, const std::string& other) {
    if (has(layout, "v_from=k")) return has(other, " v=") && !has(other, " v=normal@");
    return other.starts_with("kv=") && (has(layout, "expand=") || has(layout, "layout=bhds"));
  };
  return one_way(a, b) || one_way(b, a);
}

/// The fields of one line while it is put together.
class Fields {
 public:
  explicit Fields(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::size_t equals = std::min(word.find('='), word.size());
      order_.push_back(word.substr(0, equals));
      values_[order_.back()] = word.substr(std::min(equals + 1, word.size()));
    }
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  std::string text(const std::string& key, std::string fallback) const { return has(key) ? values_.at(key) : fallback; }
  std::size_t number(const std::string& key, std::size_t fallback) const {
    return has(key) ? std::stoul(values_.at(key)) : fallback;
  }
  void set(const std::string& key, std::string value) {
    if (!has(key)) order_.push_back(key);
    values_[key] = std::move(value);
  }
  void erase(const std::string& key) {
    values_.erase(key);
    std::erase(order_, key);
  }
  std::string line() const {
    std::string line;
    for (const std::string& key : order_) line += fmt::format(" {}={}", key, values_.at(key));
    return line;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> values_;
};

/// Lengths for `batches` sequences: one full, the others shorter, now and then as short as `least`.
std::string ragged(std::size_t batches, std::size_t least, std::size_t longest, const Pick& pick) {
  std::string lens;
  for (std::size_t b = 0; b < batches; ++b)
    lens += fmt::format("{}{}", b > 0 ? "," : "", b == 0 ? longest : least + pick(longest - least + 1));
  return lens;
}

/// Numbers that depend on other factors, and fields that they leave without a meaning.
std::string settle(const std::vector<std::string>& words, const Pick& pick) {
  Fields f(words);
  const std::size_t batches = f.number("b", 1), keys = f.number("skv", 1), d = f.number("d", 64);
  if (f.text("v_from", "own") == "k") {
    f.erase("v");
    if (f.number("dv", d) > d) f.erase("dv");
  }
  const std::size_t x = f.text("dtype", "").starts_with("e") ? 16 : f.text("dtype", "") == "fp32" ? 4 : 8;
  if (f.text("kv", "") == "vllm_x" && d % x != 0) f.set("kv", "vllm");
  std::size_t prefix = 0;
  if (f.has("prefix")) {
    const std::size_t page = f.has("kv") ? f.number("page", 16) : 1;
    prefix = keys / 2 / page * page;
    f.set("prefix", std::to_string(prefix));
    if (prefix == 0) f.erase("prefix");
  }
  const bool ragged_queries = f.has("{lens}"), ragged_keys = ragged_queries || f.has("{kv_lens}");
  f.erase("{lens}");
  f.erase("{kv_lens}");
  if (ragged_queries) f.set("q_lens", ragged(batches, 0, f.number("sq", 1), pick));
  if (ragged_keys) f.set("kv_lens", ragged(batches, prefix, keys, pick));
  std::string line = f.line();
  if (const std::size_t at = line.find("{skv}"); at != std::string::npos) line.replace(at, 5, std::to_string(keys));
  return line;
}

}  // namespace

namespace {

/// Adversarial values on what FlashAttention kernels take: contiguous keys with neighbouring channels, causal and window masks,
/// 16- and 32-bit inputs, heads up to 256 channels.
Plan dense_plan() {
  const Levels masks(kMasks.begin(), kMasks.begin() + 6), layouts(kLayouts.begin(), kLayouts.begin() + 6);
  const Levels dtypes(kDtypes.begin(), kDtypes.begin() + 5), dims{"d=64", "d=128", "d=256", "d=40", "d=192 dv=128", "d=8"};
  return {"attention",
          {kAdversarialRecipes, masks, layouts, dtypes, kLengths, kHeads, dims, kLse, kScales, kEmpty, kPoisons, kOptions},
          std::size_t{1100},
          std::uint64_t{13},
          excludes,
          settle};
}

Levels joined(Levels a, const Levels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// What single cases are drawn from: all of the above and further lengths, groups and head sizes, without a cover.
Plan fuzz_plan() {
  static const Levels kMoreLengths{"sq=1 skv=64",    "sq=1 skv=65",    "sq=8 skv=128",  "sq=64 skv=64",  "sq=65 skv=65",
                                   "sq=129 skv=64",  "sq=130 skv=130", "sq=5 skv=320",  "sq=8 skv=3",    "sq=1 skv=513",
                                   "sq=200 skv=300", "sq=16 skv=160",  "sq=33 skv=200", "sq=127 skv=191"};
  static const Levels kMoreHeads{"b=1 hq=9 hkv=1",  "b=1 hq=16 hkv=1", "b=1 hq=10 hkv=2", "b=1 hq=7 hkv=1", "b=3 hq=2 hkv=1",
                                 "b=1 hq=12 hkv=1", "b=1 hq=24 hkv=2", "b=4 hq=1",        "b=2 hq=6 hkv=3", "b=1 hq=8 hkv=4"};
  static const Levels kMoreFactors{"descale=tensor v_scale=uniform(0.00001,0.0001)@{s}",
                                   "descale=head q_scale=mixed_exponents@{s}", "descale=head v_scale=mixed_exponents@{s}",
                                   "descale=block scale_block=16 k_scale=uniform(100,1000)@{s}"};
  static const Levels kMasked{"", "", "masked_nonfinite=ignored"};
  static const Levels kMoreDims{"d=56", "d=72", "d=80", "d=104", "d=112", "d=256", "d=16 dv=8", "d=8 dv=24"};
  Plan plan{"attention",
            {joined(kAdversarialRecipes, kEdgeRecipes), kMasks, kLayouts, kDtypes, joined(kLengths, kMoreLengths),
             joined(kHeads, kMoreHeads), joined(kDims, kMoreDims), kLse, kScales, kEmpty, kPoisons, kOptions,
             joined(kFactors, kMoreFactors), kStores, kMasked},
            0,
            0};
  plan.excludes = excludes, plan.settle = settle;
  return plan;
}

}  // namespace

Plan attention_plan(std::string_view suite) {
  if (suite == "dense") return dense_plan();
  if (suite == "fuzz") return fuzz_plan();
  const bool edge = suite == "edge";
  return {"attention",
          {edge ? kEdgeRecipes : kAdversarialRecipes, kMasks, kLayouts, kDtypes, kLengths, kHeads, kDims, kLse, kScales,
           kEmpty, kPoisons, kOptions, kFactors, kStores},
          edge ? std::size_t{600} : std::size_t{1500},
          edge ? std::uint64_t{11} : std::uint64_t{12},
          excludes,
          settle};
}

std::string chosen_line(const Pick& pick) {
  constexpr std::size_t kLengthFactor = 4, kShortLengths = 12, kDimFactor = 6;
  constexpr std::array<std::size_t, 5> kSmallDims{1, 3, 4, 5, 6};  // 32, 16, 40, 8, and 64 with dv = 32
  const Plan plan = attention_plan(pick(4) == 0 ? "edge" : "adversarial");
  std::vector<std::size_t> row;
  for (std::size_t f = 0; f < plan.factors.size(); ++f) {
    if (f == kDimFactor)
      row.push_back(kSmallDims[pick(kSmallDims.size())]);
    else
      row.push_back(pick(f == kLengthFactor ? kShortLengths : plan.factors[f].size()));
  }
  return planned_line(plan, std::move(row), pick(65536), pick);
}

}  // namespace assay
