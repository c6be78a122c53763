// Greedy pairwise cover over fragments of a case line, then further distinct combinations up to the suite's size.
#include "fuzz/pairwise.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "oracle/error.h"

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
};
const Levels kLayouts{"", "layout=bshd", "batch=packed {lens}", "batch=padded {lens}", "pad_rows=3 pad_dim=8",
                      "layout=bshd pad_dim=4 pad_rows=1"};
const Levels kDtypes{"dtype=bf16", "dtype=fp16", "dtype=bf16", "dtype=fp16", "dtype=fp32"};
// Key lengths around the tile edges; the long ones come with few queries, so that a case stays in the milliseconds.
const Levels kLengths{"sq=1 skv=1",    "sq=5 skv=2",     "sq=3 skv=15",   "sq=17 skv=16",  "sq=2 skv=17",   "sq=33 skv=33",
                      "sq=9 skv=63",   "sq=16 skv=64",   "sq=4 skv=65",   "sq=12 skv=127", "sq=2 skv=128",  "sq=7 skv=129",
                      "sq=1 skv=200",  "sq=6 skv=255",   "sq=3 skv=256",  "sq=5 skv=257",  "sq=2 skv=511",  "sq=1 skv=1024",
                      "sq=3 skv=1025", "sq=2 skv=1087",  "sq=4 skv=1151", "sq=1 skv=1600", "sq=2 skv=2048", "sq=70 skv=100"};
const Levels kHeads{"b=1 hq=1", "b=2 hq=2", "b=1 hq=4 hkv=2", "b=2 hq=4 hkv=1", "b=1 hq=3 hkv=1", "b=1 hq=6 hkv=2"};
const Levels kDims{"d=64", "d=32", "d=128", "d=16", "d=40", "d=8", "d=64 dv=32", "d=32 dv=80", "d=96", "d=24"};
const Levels kLse{"", "lse=2", "", "lse=none"};
const Levels kScales{"", "", "scale=0.5", "scale=0.03", "scale=-0.125", "scale=0"};
const Levels kEmpty{"", "empty=nan", "empty=mean", "empty_lse=inf"};
const Levels kPoisons{"", "poison=inf", "poison=max", "poison=tag", "poison=zero"};

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

Plan attention_plan(std::string_view suite) {
  const bool edge = suite == "edge";
  return {"attention",
          {edge ? kEdgeRecipes : kAdversarialRecipes, kMasks, kLayouts, kDtypes, kLengths, kHeads, kDims, kLse, kScales,
           kEmpty, kPoisons},
          edge ? std::size_t{600} : std::size_t{1500},
          edge ? std::uint64_t{11} : std::uint64_t{12}};
}

Plan plan_of(std::string_view op, std::string_view suite) {
  if (op == "attention") return attention_plan(suite);
  if (op == "softmax") return softmax_plan(suite);
  if (op == "merge") return merge_plan(suite);
  throw InputError(fmt::format("suite '{}': op '{}' has no plan of cases", suite, op));
}

using Pick = std::function<std::size_t(std::size_t)>;

/// splitmix64 over a counter: the same choices everywhere.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>((x ^ (x >> 31)) % n);
  }

 private:
  std::uint64_t state_;
};

using Row = std::vector<std::size_t>;
using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

std::size_t field(const std::string& lengths, std::string_view key) {
  const std::size_t at = lengths.find(std::string(key) + "=");
  return at == std::string::npos ? 1 : std::stoul(lengths.substr(at + key.size() + 1));
}

/// Ragged lengths for `batches` sequences: one full, the others shorter, now and then empty.
std::string ragged(std::size_t batches, std::size_t sq, std::size_t skv, const Pick& pick) {
  std::string q, kv;
  for (std::size_t b = 0; b < batches; ++b) {
    q += fmt::format("{}{}", b ? "," : "", b == 0 ? sq : pick(sq + 1));
    kv += fmt::format("{}{}", b ? "," : "", b == 0 ? skv : pick(skv + 1));
  }
  return fmt::format("q_lens={} kv_lens={}", q, kv);
}

/// The line of a row of levels; its seeds count up from `seed`.
std::string line_of(const Plan& plan, const Row& row, std::size_t seed, const Pick& pick) {
  std::string line(plan.op);
  for (std::size_t f = 0; f < row.size(); ++f)
    if (!plan.factors[f][row[f]].empty()) line += " " + plan.factors[f][row[f]];
  const std::string lens = ragged(field(line, " b"), field(line, " sq"), field(line, " skv"), pick);
  for (std::size_t at; (at = line.find("{s}")) != std::string::npos;) line.replace(at, 3, std::to_string(seed++));
  if (const std::size_t at = line.find("{lens}"); at != std::string::npos) line.replace(at, 6, lens);
  return line;
}

}  // namespace

std::string chosen_line(const Pick& pick) {
  constexpr std::size_t kLengthFactor = 4, kShortLengths = 12, kDimFactor = 6;
  constexpr std::array<std::size_t, 5> kSmallDims{1, 3, 4, 5, 6};  // 32, 16, 40, 8, and 64 with dv = 32
  const Plan plan = attention_plan(pick(4) == 0 ? "edge" : "adversarial");
  Row row;
  for (std::size_t f = 0; f < plan.factors.size(); ++f) {
    if (f == kDimFactor) row.push_back(kSmallDims[pick(kSmallDims.size())]);
    else row.push_back(pick(f == kLengthFactor ? kShortLengths : plan.factors[f].size()));
  }
  return line_of(plan, row, pick(65536), pick);
}

std::vector<std::string> pairwise_lines(std::string_view op, std::string_view suite) {
  const Plan plan = plan_of(op, suite);
  Choices choices(plan.seed);
  std::set<Pair> open;
  for (std::size_t a = 0; a < plan.factors.size(); ++a)
    for (std::size_t b = a + 1; b < plan.factors.size(); ++b)
      for (std::size_t i = 0; i < plan.factors[a].size(); ++i)
        for (std::size_t j = 0; j < plan.factors[b].size(); ++j) open.insert({a, i, b, j});
  const auto gain = [&](const Row& row) {
    std::size_t count = 0;
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) count += open.count({a, row[a], b, row[b]});
    return count;
  };
  std::vector<std::string> lines;
  while (lines.size() < plan.size || !open.empty()) {
    Row best;
    std::size_t best_gain = 0;
    const std::size_t tries = open.empty() ? 1 : 20;
    for (std::size_t attempt = 0; attempt < tries; ++attempt) {
      Row row;
      for (const Levels& levels : plan.factors) row.push_back(choices.below(levels.size()));
      if (attempt == 0 && !open.empty()) {  // at least one open pair, so that the cover ends
        const auto& [a, i, b, j] = *std::next(open.begin(), static_cast<std::ptrdiff_t>(choices.below(std::min<std::size_t>(open.size(), 64))));
        row[a] = i, row[b] = j;
      }
      if (const std::size_t g = gain(row); best.empty() || g > best_gain) best = row, best_gain = g;
    }
    for (std::size_t a = 0; a < best.size(); ++a)
      for (std::size_t b = a + 1; b < best.size(); ++b) open.erase({a, best[a], b, best[b]});
    lines.push_back(line_of(plan, best, lines.size() * 8 + 1, [&](std::size_t n) { return choices.below(n); }));
  }
  return lines;
}

}  // namespace assay
