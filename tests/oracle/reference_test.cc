// The ball reference against an independent MPFR evaluation, on random small problems with every convention.
#include "oracle/ops/attention/reference.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/oracle/independent_attention.h"
#include "tests/oracle/problems.h"

namespace assay {
namespace {

std::string decimal(std::int64_t value) { return std::to_string(value); }

std::string lengths(Dice& dice, std::int64_t batch, std::int64_t longest) {
  std::string text;
  for (std::int64_t b = 0; b < batch; ++b) text += (b > 0 ? "," : "") + decimal(dice.between(0, longest));
  return text;
}

/// Where keys lie: lengths, prefix, pages, views. After b, hkv, sq, skv, d and dtype.
void set_store(Params& p, Dice& dice, std::int64_t batch, std::int64_t len_q, std::int64_t len_kv) {
  const std::string batching = dice.pick({"dense", "packed", "padded"});
  const std::string store = dice.one_in(2) ? "contiguous" : dice.pick({"vllm", "vllm_x", "nhd", "hnd"});
  const bool paged = store != "contiguous", dense = batching == "dense";
  p.set("batch", batching);
  p.set("kv", store);
  std::int64_t shortest = len_kv;
  if (!dense) p.set("q_lens", lengths(dice, batch, len_q));
  if (!dense || paged) {
    std::string lens;
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t len = dice.between(0, len_kv);
      shortest = std::min(shortest, len);
      lens += (b > 0 ? "," : "") + decimal(len);
    }
    p.set("kv_lens", lens);
  }
  const std::int64_t page = dice.pick<std::int64_t>({1, 2, 3, 16});
  if (dice.one_in(3)) p.set("prefix", decimal(paged ? shortest / page * page : dice.between(0, shortest)));
  if (paged) {
    p.set("page", decimal(page));
    p.set("page_seed", decimal(dice.between(0, 3)));
    p.set("spare_pages", decimal(dice.between(0, 3)));
    p.set("table_pad", dice.pick({"zero", "minus_one", "huge", "shared"}));
  }
  if (store == "vllm_x") {  // 16 bytes
    const std::string dtype = *p.find("dtype");
    p.set("d", decimal(dice.between(1, 3) * (dtype == "fp32" ? 4 : dtype.starts_with("e") ? 16 : 8)));
  }
  if (dice.one_in(4)) {
    p.set("v_from", "k");
    p.set("dv", decimal(dice.between(1, std::stoll(*p.find("d")))));
  }
  if (batching != "packed") p.set("layout", paged ? dice.pick({"bhsd", "bshd"}) : dice.pick({"bhsd", "bshd", "bhds"}));
  if (dense && !paged) p.set("expand", dice.pick({"none", "none", "batch", "heads"}));
  if (dice.one_in(3)) p.set("offset", decimal(dice.between(1, 5)));
  p.set("pad_rows", decimal(dice.between(0, 2)));
  p.set("pad_dim", decimal(dice.between(0, 3)));
  if (dense && len_q > 0 && dice.one_in(4)) {
    p.set("rows", "1");
    p.set("rows_seed", decimal(dice.between(0, 99)));
  }
}

/// What changes logits and weights besides masks; most problems have at most one or two of these.
void set_logits(Params& p, Dice& dice) {
  if (dice.one_in(4)) p.set("softcap", dice.pick({"1", "30", "0.25", "3e38", "1e-20", "1e-45"}));
  if (dice.one_in(4)) {
    p.set("alibi", dice.pick({"distance", "key", "diagonal", "last"}));
    p.set("slopes", dice.pick({"head", "batch_head"}));
  }
  if (dice.one_in(4)) p.set("sink", dice.pick({"in_lse", "out_of_lse"}));
  if (dice.one_in(5)) p.set("segments", "1");
  if (dice.one_in(4)) {
    p.set("descale", dice.pick({"tensor", "head", "block"}));
    if (*p.find("descale") == "block") p.set("scale_block", decimal(dice.between(1, 5)));
  }
}

/// Any legal parameters with few rows and at most 12 keys.
Params random_params(Dice& dice) {
  Params p;
  const std::int64_t batch = dice.between(1, 2), heads_kv = dice.between(1, 2);
  const std::int64_t len_q = dice.between(0, 3), len_kv = dice.between(0, 12);
  p.set("b", decimal(batch));
  p.set("hq", decimal(heads_kv * (dice.one_in(3) ? dice.between(2, 3) : 1)));
  p.set("hkv", decimal(heads_kv));
  p.set("sq", decimal(len_q));
  p.set("skv", decimal(len_kv));
  p.set("d", decimal(dice.between(1, 9)));
  if (dice.one_in(2)) p.set("dv", decimal(dice.between(1, 9)));
  p.set("dtype", dice.pick({"fp32", "fp16", "bf16", "e4m3", "e5m2"}));
  if (dice.one_in(4)) p.set("out", dice.pick({"fp32", "fp16", "bf16"}));
  if (!dice.one_in(3))
    p.set("scale", dice.pick({"1", "-0.5", "0", "-0", "1e-45", "3e38", "-1.7e30", "0.1", "1e-20", "7"}));
  const std::string data = dice.pick({"none", "bool", "additive", "block", "list"});
  p.set("mask", dice.one_in(3) ? (data == "none" ? "causal" : "causal+" + data) : data);
  if (data == "block") p.set("block", decimal(dice.between(1, 3)) + "," + decimal(dice.between(1, 5)));
  if (data == "list") p.set("list", decimal(dice.between(1, 8)));
  p.set("align", dice.pick({"br", "tl"}));
  if (dice.one_in(3)) p.set("window", decimal(dice.between(-1, 6)) + "," + decimal(dice.between(-1, 4)));
  p.set("window_ends", dice.pick({"inclusive", "left_exclusive"}));
  p.set("empty", dice.pick({"zero", "nan", "mean"}));
  p.set("empty_lse", dice.pick({"-inf", "inf"}));
  p.set("lse", dice.pick({"none", "e", "2"}));
  p.set("masked_nonfinite", dice.pick({"ignored", "propagates"}));
  set_logits(p, dice);
  set_store(p, dice, batch, len_q, len_kv);
  return p;
}

/// How the numbers of one tensor are drawn.
enum class Style { kRawBits, kModerate, kSmallIntegers, kExtremes, kZeros };

std::uint64_t random_code(Dice& dice, Style style, Format format) {
  const FormatInfo& f = info(format);
  const double sign = dice.one_in(2) ? 1 : -1;
  switch (style) {
    case Style::kRawBits: return dice.bits();
    case Style::kModerate: return encode(format, dice.real(-4, 4));
    case Style::kSmallIntegers: return encode(format, static_cast<double>(dice.between(-2, 2)));
    case Style::kExtremes:
      return encode(format,
                    sign * dice.pick({f.max_finite, f.min_normal, f.min_subnormal, 1.0, f.max_finite / 2, 0.0}));
    case Style::kZeros: return encode(format, sign * 0.0);
  }
  return 0;
}

/// Additive masks are -inf, 0 and finite; now and then anything.
std::uint64_t random_bias(Dice& dice, bool wild) {
  if (wild && dice.one_in(12)) return dice.bits();
  return dice.pick<std::uint64_t>({0xff800000U, 0, 0xff7fffffU, encode(Format::kFp32, dice.real(-8, 8))});
}

/// Slopes, sinks and scale factors: ordinary numbers, now and then anything.
std::uint64_t random_constant(Dice& dice, bool positive, std::int64_t special) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (special > 0 && dice.one_in(special))
    return encode(Format::kFp32, dice.pick({infinity, -infinity, infinity - infinity, 0.0, -0.0, 1e30, -1e-30}));
  return encode(Format::kFp32, positive ? dice.real(0.25, 4) : dice.real(-3, 3));
}

/// Lists of distinct keys, -1 and entries out of range.
void fill_lists(Problem& problem, Dice& dice) {
  const OutputView mask = input(problem, "mask").output();
  const std::int64_t keys = attention_params(problem.params).len_kv, entries = mask.layout->shape.back();
  for (std::int64_t first = 0; first < mask.layout->storage; first += entries) {
    std::vector<std::int64_t> all{-1, -1, keys, 0x7fffffff, -5, -2147483647, keys + 1, -1};
    for (std::int64_t key = 0; key < keys; ++key) all.push_back(key);
    for (std::int64_t n = 0; n < entries; ++n) {
      std::swap(all[static_cast<std::size_t>(n)],
                all[static_cast<std::size_t>(dice.between(n, static_cast<std::int64_t>(all.size()) - 1))]);
      mask.set_code(first + n, static_cast<std::uint32_t>(all[static_cast<std::size_t>(n)]));
    }
  }
}

Problem random_problem(Dice& dice) {
  const Params params = random_params(dice);
  const auto style = [&] {
    return dice.pick({Style::kRawBits, Style::kModerate, Style::kModerate, Style::kSmallIntegers, Style::kExtremes});
  };
  const Style q = style(), k = style(), v = dice.one_in(20) ? Style::kZeros : style();
  const bool wild = dice.one_in(4), mostly_masked = dice.one_in(4);
  const std::int64_t special = dice.one_in(3) ? 12 : 0;  // one element in so many is overwritten by a special value
  const std::int64_t special_constant = dice.one_in(3) ? 4 : 0;
  Problem problem = make_problem(params, [&](const TensorLayout& t) -> std::uint64_t {
    if (t.role == "mask" && t.format == Format::kUint8)
      return dice.one_in(mostly_masked ? 6 : 2) ? static_cast<std::uint64_t>(dice.between(1, 255)) : 0;
    if (t.format == Format::kInt32) return static_cast<std::uint64_t>(dice.between(0, 1));  // segments; lists below
    if (t.role == "mask") return mostly_masked && !dice.one_in(6) ? 0xff800000U : random_bias(dice, wild);
    if (t.role == "slopes" || t.role == "sink" || t.role.ends_with("_scale"))
      return random_constant(dice, t.role != "sink", special_constant);
    if (special > 0 && t.role != "q" && dice.one_in(special)) {
      const double infinity = std::numeric_limits<double>::infinity();
      const double max = info(t.format).max_finite;
      return encode(t.format,
                    dice.pick({infinity, -infinity, infinity - infinity, -0.0, max, info(t.format).min_subnormal}));
    }
    return random_code(dice, t.role == "q" ? q : t.role.starts_with("k") ? k : v, t.format);
  });
  if (attention_params(params).data_mask == DataMask::kList) fill_lists(problem, dice);
  return problem;
}

std::string text(const Params& params) {
  std::string line;
  for (const auto& [key, value] : params.items) line += " " + key + "=" + value;
  return line;
}

struct Tally {
  std::int64_t numbers = 0, tight = 0;  // known numbers; those whose ball adds at most 2^-60 |mid| to the rounding
  std::int64_t unknown = 0;             // radius +inf
  std::int64_t by_class[32] = {};
};

void compare(const OutputTruth& truth, const std::map<std::int64_t, independent::Expected>& expected, Tally& tally) {
  using independent::Real;
  ASSERT_EQ(truth.element.size(), expected.size());
  for (std::size_t at = 0; at < truth.element.size(); ++at) {
    const auto found = expected.find(truth.element[at]);
    ASSERT_NE(found, expected.end()) << truth.layout.role << " element " << truth.element[at];
    const independent::Expected& e = found->second;
    ASSERT_EQ(truth.classes[at], e.classes) << truth.layout.role << " element " << truth.element[at];
    ++tally.by_class[e.classes];
    if ((e.classes & kNumber) == 0) {
      ASSERT_EQ(truth.mid[at], 0);
      ASSERT_EQ(truth.radius[at], 0);
      continue;
    }
    if (std::isinf(truth.radius[at])) {
      ++tally.unknown;
      continue;
    }
    const Real distance = abs(Real(truth.mid[at]) - e.value);
    ASSERT_LE(distance, Real(truth.radius[at]) + e.error)
        << truth.layout.role << " element " << truth.element[at] << " mid " << truth.mid[at] << " radius "
        << truth.radius[at] << " independent " << e.value.str(30) << " +- " << e.error.str(5);
    ++tally.numbers;
    tally.tight += Real(truth.radius[at]) - distance <= ldexp(abs(Real(truth.mid[at])), -60) + e.error;
  }
}

TEST(Truth, OfBallsAndOfFp64AgreesWithAnIndependentEvaluationInClassAndValueOnTenThousandRandomProblems) {
  Dice dice(20240607);
  Tally o, lse, fast_o, fast_lse;
  for (int n = 0; n < 10000; ++n) {
    const Problem problem = random_problem(dice);
    SCOPED_TRACE("problem " + std::to_string(n) + text(problem.params));
    const independent::Outputs expected = independent::Attention(problem).evaluate();
    const Truth truth = attention_reference(problem, 128),
                fast = op_named("attention").evaluate(problem, {}, Level::kT0).truth;
    const bool has_lse = truth.outputs.size() > 1;
    {
      SCOPED_TRACE("balls");
      compare(truth.outputs[0], expected.o, o);
      if (has_lse) compare(truth.outputs[1], expected.lse, lse);
    }
    SCOPED_TRACE("fp64");
    compare(fast.outputs[0], expected.o, fast_o);
    if (has_lse) compare(fast.outputs[1], expected.lse, fast_lse);
    if (HasFatalFailure()) return;
  }
  // The generator must reach every class set that the rules can give, or agreement says little.
  for (const int classes : {1, 2, 4, 8, 16, 1 + 16, 2 + 16, 4 + 16, 8 + 16, 4 + 8 + 16})
    EXPECT_GE(o.by_class[classes], 20) << classes;
  for (const int classes : {1, 4, 8, 16, 4 + 16, 8 + 16, 4 + 8 + 16}) EXPECT_GE(lse.by_class[classes], 20) << classes;
  EXPECT_GE(o.numbers, 30000);
  EXPECT_EQ(o.unknown + lse.unknown, 0);
  EXPECT_GE(fast_o.numbers, 10000);
  EXPECT_GE(fast_lse.numbers, 5000);
  EXPECT_GE(o.tight, o.numbers / 2) << "the median ball is wider than 2^-60";
  EXPECT_GE(lse.tight, lse.numbers / 2);
}

TEST(Reference, HasBallsOfRelativeRadiusBelowTwoToTheMinus60At128BitsOnOrdinaryRows) {
  Dice dice(5);
  const Problem problem =
      make_problem(make_params({{"hq", "2"}, {"sq", "8"}, {"skv", "200"}, {"d", "64"}, {"mask", "causal"}}),
                   [&](const TensorLayout& t) { return encode(t.format, dice.real(-3, 3)); });
  const AttentionProblem attention(problem);
  for (const AttentionRow& row : attention.rows()) {
    const RowBalls balls = row_balls(attention, row, 128);
    EXPECT_TRUE(balls.lse.relative_radius_within(-60));
    for (const Ball& o : balls.o) EXPECT_TRUE(o.relative_radius_within(-60));
    const RowBalls coarse = row_balls(attention, row, 40), fine = row_balls(attention, row, 256);
    for (std::size_t c = 0; c < balls.o.size(); ++c) {
      EXPECT_TRUE(overlap(coarse.o[c], fine.o[c]));
      EXPECT_TRUE(overlap(balls.o[c], fine.o[c]));
    }
  }
}

Problem two_keys(double q, double k0, double k1, double v0, double v1) {
  Problem problem = make_problem(make_params({{"skv", "2"}, {"d", "1"}, {"scale", "1"}, {"dtype", "fp32"}}),
                                 [](const TensorLayout&) { return std::uint64_t{0}; });
  const auto set = [&](const char* role, std::int64_t at, double value) {
    input(problem, role).output().set_code(at, encode(Format::kFp32, value));
  };
  set("q", 0, q), set("k", 0, k0), set("k", 1, k1), set("v", 0, v0), set("v", 1, v1);
  return problem;
}

TEST(Reference, GivesTheClosedFormOfTwoKeys) {
  // x = (0, 1), v = (0, 1): o = e / (1 + e), lse = log(1 + e).
  const Truth truth = attention_reference(two_keys(1, 0, 1, 0, 1), 128);
  EXPECT_DOUBLE_EQ(truth.outputs[0].mid[0], 0.73105857863000487925);
  EXPECT_DOUBLE_EQ(truth.outputs[1].mid[0], 1.31326168751822283405);
  EXPECT_EQ(truth.rows[0].keys, 2);
  EXPECT_EQ(truth.rows[0].first_key, 0);
  EXPECT_EQ(truth.rows[0].last_key, 1);
  EXPECT_DOUBLE_EQ(truth.rows[0].max_logit, 1);
  EXPECT_DOUBLE_EQ(truth.rows[0].min_logit, 0);
  EXPECT_DOUBLE_EQ(truth.rows[0].lse, 1.31326168751822283405);
  EXPECT_DOUBLE_EQ(truth.rows[0].effective_keys, 1.6480542736638853);  // (1 + e)^2 / (1 + e^2)
}

TEST(Reference, RaisesThePrecisionUntilItSeesADifferenceFarBelowTheSizeOfTheLogits) {
  // q = (3e38, 1), k_0 = (3e38, 0), k_1 = (3e38, 1): logits near 9e76 that differ by 1, which takes 257 bits to see.
  Problem problem =
      make_problem(make_params({{"skv", "2"}, {"d", "2"}, {"dv", "1"}, {"scale", "1"}, {"dtype", "fp32"}}),
                   [](const TensorLayout&) { return std::uint64_t{0}; });
  const auto set = [&](const char* role, std::int64_t at, double value) {
    input(problem, role).output().set_code(at, encode(Format::kFp32, value));
  };
  set("q", 0, 3e38), set("q", 1, 1), set("k", 0, 3e38), set("k", 2, 3e38), set("k", 3, 1), set("v", 1, 1);
  const AttentionProblem attention(problem);
  EXPECT_FALSE(row_balls(attention, attention.rows()[0], 128).o[0].relative_radius_within(-10));
  const Truth truth = attention_reference(problem, 128);
  EXPECT_DOUBLE_EQ(truth.outputs[0].mid[0], 0.73105857863000487925);  // e / (1 + e)
  EXPECT_LE(truth.outputs[0].radius[0], 0x1p-54);
}

TEST(Reference, CoversAWeightThatUnderflowsDoubleAndAHugeValueBehindIt) {
  // o = 1e38 e^-100 (to 1e-43), and 1e38 e^-2000, which no double holds.
  const Truth small = attention_reference(two_keys(1, 0, -100, 0, 1e38), 128);
  EXPECT_NEAR(small.outputs[0].mid[0] / 3.7200759760208360e-6, 1, 1e-6);  // fl32(1e38) is 1e38 to 1e-7
  const Truth tiny = attention_reference(two_keys(1, 0, -2000, 0, 1e38), 128);
  EXPECT_EQ(tiny.outputs[0].mid[0], 0);
  EXPECT_EQ(tiny.outputs[0].radius[0], 0x1p-1074);
  EXPECT_EQ(tiny.outputs[0].classes[0], kNumber);
}

}  // namespace
}  // namespace assay
