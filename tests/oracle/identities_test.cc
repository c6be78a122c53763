// Relations that attention must satisfy whatever the answer is, checked on the truth of both evaluators; no kernel
// involved.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "oracle/ops/attention/row_truth.h"
#include "tests/oracle/problems.h"

namespace assay {
namespace {

using Entry = std::function<double(std::int64_t b, std::int64_t head, std::int64_t position, std::int64_t last)>;

/// A problem by meaning: what each sequence, head, position and channel holds, wherever that lies in memory.
struct Meaning {
  Params params;
  Entry q, k, v;  ///< values of the input format
  Entry mask;     ///< (b, head, query, key); only if params ask for one
};

/// Memory that no sequence uses holds NaN or a large number.
Problem build(const Meaning& meaning) {
  const AttentionParams p = attention_params(meaning.params);
  std::uint64_t unused = 0;
  Problem problem = make_problem(meaning.params, [&](const TensorLayout& t) {
    if (t.format == Format::kUint8) return std::uint64_t{1};
    return encode(t.format, ++unused % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : info(t.format).max_finite);
  });
  const bool packed = p.batching == Batching::kPacked, dense = p.batching == Batching::kDense;
  const auto fill = [&](const char* role, const Entry& entry, std::int64_t heads, std::int64_t len,
                        const std::vector<std::int64_t>& lens) {
    Tensor& tensor = input(problem, role);
    const OutputView t = tensor.output();
    for (std::int64_t b = 0, token = 0; b < p.batch; ++b) {
      const std::int64_t used = dense ? len : lens[static_cast<std::size_t>(b)];
      for (std::int64_t i = 0; i < used; ++i, ++token)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t c = 0; c < t.layout->shape.back(); ++c)
            t.set_code(packed ? t.element(token, h, c) : t.element(b, h, i, c), encode(t.format(), entry(b, h, i, c)));
    }
  };
  fill("q", meaning.q, p.heads_q, p.len_q, p.lens_q);
  fill("k", meaning.k, p.heads_kv, p.len_kv, p.lens_kv);
  fill("v", meaning.v, p.heads_kv, p.len_kv, p.lens_kv);
  if (p.data_mask == DataMask::kNone) return problem;
  const OutputView t = input(problem, "mask").output();
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads_q; ++h)
      for (std::int64_t i = 0; i < p.len_q; ++i)
        for (std::int64_t j = 0; j < p.len_kv; ++j)
          t.set_code(t.element(b, h, i, j), encode(t.format(), meaning.mask(b, h, i, j)));
  return problem;
}

struct Known {
  double mid = 0, radius = 0;
  ClassSet classes = 0;
};

struct Row {
  std::vector<Known> o;
  Known lse;  ///< natural
};

/// By (b, h, i).
using Answer = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Row>;

Answer answer_of(const Truth& truth) {
  Answer answer;
  for (std::size_t output = 0; output < truth.outputs.size(); ++output) {
    const OutputTruth& t = truth.outputs[output];
    for (std::size_t at = 0; at < t.mid.size(); ++at) {
      const RowFacts& facts = truth.rows[static_cast<std::size_t>(t.row[at])];
      Row& row = answer[{facts.batch, facts.head, facts.query}];
      const Known known{t.mid[at], t.radius[at], t.classes[at]};
      if (output == 0)
        row.o.push_back(known);
      else
        row.lse = known;
    }
  }
  return answer;
}

struct Evaluator {
  const char* name;
  Truth (*truth)(const Problem&);
};

class Identity : public testing::TestWithParam<Evaluator> {
 protected:
  Answer solve(const Meaning& meaning) const { return answer_of(GetParam().truth(build(meaning))); }
};
INSTANTIATE_TEST_SUITE_P(
    Evaluators, Identity,
    testing::Values(Evaluator{"balls", [](const Problem& p) { return attention_reference(p, 128); }},
                    Evaluator{"fp64",
                              [](const Problem& p) { return op_named("attention").evaluate(p, Arithmetic{}, Level::kT0).truth; }}),
    [](const auto& info) { return info.param.name; });

/// The balls (a + offset) and b meet; `slack` covers roundings of `offset` and of the test's own sums.
void expect_meet(const Known& a, const Known& b, double offset = 0, double slack = 0) {
  ASSERT_EQ(a.classes, b.classes);
  if ((a.classes & kNumber) == 0) return;
  ASSERT_LT(a.radius, 1e-9 * (1 + std::abs(a.mid)));
  ASSERT_LT(b.radius, 1e-9 * (1 + std::abs(b.mid)));
  const double own = offset == 0 && slack == 0 ? 0 : 0x1p-50 * (std::abs(a.mid) + std::abs(b.mid) + std::abs(offset));
  ASSERT_LE(std::abs(a.mid + offset - b.mid), (a.radius + b.radius) * (1 + 0x1p-50) + own + slack)
      << a.mid << " + " << offset << " against " << b.mid;
}

void expect_meet(const Row& a, const Row& b, double lse_offset = 0) {
  ASSERT_EQ(a.o.size(), b.o.size());
  for (std::size_t c = 0; c < a.o.size(); ++c) expect_meet(a.o[c], b.o[c]);
  expect_meet(a.lse, b.lse, lse_offset);
}

void expect_meet(const Answer& a, const Answer& b, double lse_offset = 0) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const auto& [row, known] : a) {
    ASSERT_TRUE(b.contains(row));
    expect_meet(known, b.at(row), lse_offset);
  }
}

bool same_bits(const Known& a, const Known& b) {
  return std::bit_cast<std::uint64_t>(a.mid) == std::bit_cast<std::uint64_t>(b.mid) &&
         std::bit_cast<std::uint64_t>(a.radius) == std::bit_cast<std::uint64_t>(b.radius) && a.classes == b.classes;
}
bool same_bits(const Row& a, const Row& b) {
  for (std::size_t c = 0; c < a.o.size(); ++c)
    if (!same_bits(a.o[c], b.o[c])) return false;
  return same_bits(a.lse, b.lse) && a.o.size() == b.o.size();
}
bool same_bits(const Answer& a, const Answer& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same_bits(x.second, y.second); });
}

/// A repeatable number in [-2, 2] with 9 bits, so that every input format holds it and sums of two.
Entry noise(std::uint64_t seed) {
  return [seed](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    std::uint64_t x = seed;
    for (const std::int64_t part : {b, h, i, c}) {
      x = (x ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15U;
      x ^= x >> 29;
    }
    return static_cast<double>(static_cast<std::int64_t>(x % 129) - 64) / 32;
  };
}

Params with(Params params, std::initializer_list<std::pair<std::string, std::string>> items) {
  for (const auto& [key, value] : items) params.set(key, value);
  return params;
}

constexpr int kProblems = 6;

/// Small problems without structure masks; sq <= skv, so that causal rows are never empty.
Meaning random_meaning(Dice& dice) {
  const std::int64_t len_q = dice.between(1, 6);
  const std::int64_t group = dice.between(1, 2), heads_kv = dice.between(1, 3);
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  Meaning m;
  m.params = make_params({{"b", text(dice.between(1, 3))},
                          {"hq", text(group * heads_kv)},
                          {"hkv", text(heads_kv)},
                          {"sq", text(len_q)},
                          {"skv", text(len_q + dice.between(0, 20))},
                          {"d", text(dice.between(1, 16))},
                          {"dv", text(dice.between(1, 8))},
                          {"dtype", dice.pick({"bf16", "fp16", "fp32"})},
                          {"scale", dice.pick({"0.5", "-0.3", "1.7", "0"})}});
  m.q = noise(dice.bits());
  m.k = noise(dice.bits());
  m.v = noise(dice.bits());
  return m;
}

/// noise, thinned to a mask in which key 0 always takes part.
Entry keep_some(std::uint64_t seed) {
  const Entry draw = noise(seed);
  return [draw](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return j == 0 || draw(b, h, i, j) > 0 ? 1.0 : 0.0;
  };
}

Entry bias_of(Entry keep) {
  return [keep](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return keep(b, h, i, j) != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
  };
}

TEST_P(Identity, AddingAConstantToAllLogitsLeavesTheOutputAndMovesTheLse) {
  Dice dice(1);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const AttentionParams p = attention_params(m.params);
    m.params.set("d", std::to_string(p.dim_qk + 1));
    Meaning shifted = m;
    const double constant = dice.pick({7.25, -20.0, 100.0});
    const auto spare_lane = [&](const Entry& rest, double value) -> Entry {
      return [=](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        return c == p.dim_qk ? value : rest(b, h, i, c);
      };
    };
    m.q = shifted.q = spare_lane(m.q, 1);
    m.k = spare_lane(m.k, 0);
    shifted.k = spare_lane(shifted.k, constant);
    expect_meet(solve(m), solve(shifted), static_cast<double>(p.scale) * constant);
  }
}

TEST_P(Identity, PermutingTheKeysChangesNothing) {
  Dice dice(2);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    if (n % 2 == 0) {
      m.params.set("mask", "additive");
      m.mask = noise(dice.bits());
    }
    const std::int64_t keys = attention_params(m.params).len_kv, turn = dice.between(0, keys - 1);
    const auto moved = [=](std::int64_t j) { return (keys - 1 - j + turn) % keys; };
    Meaning permuted = m;
    permuted.k = [=](auto b, auto h, auto j, auto c) { return m.k(b, h, moved(j), c); };
    permuted.v = [=](auto b, auto h, auto j, auto c) { return m.v(b, h, moved(j), c); };
    if (m.mask) permuted.mask = [=](auto b, auto h, auto i, auto j) { return m.mask(b, h, i, moved(j)); };
    expect_meet(solve(m), solve(permuted));
  }
}

TEST_P(Identity, TheOutputIsLinearInV) {
  Dice dice(3);
  for (int n = 0; n < kProblems; ++n) {
    Meaning a = random_meaning(dice);
    a.params.set("mask", "causal");
    Meaning b = a, sum = a;
    b.v = noise(dice.bits());
    sum.v = [=](auto batch, auto h, auto j, auto c) { return a.v(batch, h, j, c) - 0.5 * b.v(batch, h, j, c); };
    const Answer first = solve(a), second = solve(b), both = solve(sum);
    for (const auto& [row, known] : both)
      for (std::size_t c = 0; c < known.o.size(); ++c) {
        const Known& x = first.at(row).o[c];
        const Known& y = second.at(row).o[c];
        if (((x.classes | y.classes | known.o[c].classes) & ~kNumber) != 0) continue;  // all v zero in this channel
        expect_meet(x, known.o[c], -0.5 * y.mid, 0.5 * y.radius);
      }
  }
}

TEST_P(Identity, RepeatingAllKeysLeavesTheOutputAndAddsTheLogOfTheCountToTheLse) {
  Dice dice(4);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"mask", "bool"}, {"lse", n % 2 == 0 ? "e" : "2"}});
    m.mask = keep_some(dice.bits());
    const std::int64_t keys = attention_params(m.params).len_kv, times = dice.between(2, 5);
    Meaning repeated = m;
    repeated.params.set("skv", std::to_string(keys * times));
    repeated.k = [=](auto b, auto h, auto j, auto c) { return m.k(b, h, j % keys, c); };
    repeated.v = [=](auto b, auto h, auto j, auto c) { return m.v(b, h, j % keys, c); };
    repeated.mask = [=](auto b, auto h, auto i, auto j) { return m.mask(b, h, i, j % keys); };
    const auto count = static_cast<double>(times);
    expect_meet(solve(m), solve(repeated), n % 2 == 0 ? std::log(count) : std::log2(count));
  }
}

TEST_P(Identity, StatesOfTwoKeyRangesMergeByTheirLseIntoTheStateOfAllKeys) {
  Dice dice(5);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params.set("skv", "17");
    const std::int64_t cut = dice.between(1, 16);
    Meaning left = m, right = m;
    left.params.set("skv", std::to_string(cut));
    right.params.set("skv", std::to_string(17 - cut));
    right.k = [=](auto b, auto h, auto j, auto c) { return m.k(b, h, cut + j, c); };
    right.v = [=](auto b, auto h, auto j, auto c) { return m.v(b, h, cut + j, c); };
    const Answer whole = solve(m), first = solve(left), second = solve(right);
    for (const auto& [at, row] : whole) {
      const Row& x = first.at(at);
      const Row& y = second.at(at);
      const double lse_x = x.lse.mid, lse_y = y.lse.mid, lse_radius = std::max(x.lse.radius, y.lse.radius);
      const double top = std::max(lse_x, lse_y), wx = std::exp(lse_x - top), wy = std::exp(lse_y - top);
      const Known lse{top + std::log(wx + wy), lse_radius, kNumber};
      expect_meet(lse, row.lse, 0, 8 * 0x1p-52 * (1 + std::abs(top)));
      for (std::size_t c = 0; c < row.o.size(); ++c) {
        // Neither side: a channel whose v are all 0. A wrong LSE moves weight between the two states.
        const double px = wx / (wx + wy), py = wy / (wx + wy);
        const Known merged{px * x.o[c].mid + py * y.o[c].mid, px * x.o[c].radius + py * y.o[c].radius,
                           row.o[c].classes};
        const double drift = 4 * lse_radius + 32 * 0x1p-52 * (1 + std::abs(top));
        expect_meet(merged, row.o[c], 0, drift * (std::abs(x.o[c].mid) + std::abs(y.o[c].mid)));
      }
    }
  }
}

TEST_P(Identity, GroupedHeadsEqualHeadsWithTheirOwnCopyOfKAndV) {
  Dice dice(6);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const std::int64_t group = dice.between(2, 4), heads_kv = dice.between(1, 3);
    m.params = with(m.params, {{"hkv", std::to_string(heads_kv)}, {"hq", std::to_string(group * heads_kv)}});
    Meaning expanded = m;
    expanded.params.set("hkv", std::to_string(group * heads_kv));
    expanded.k = [=](auto b, auto h, auto j, auto c) { return m.k(b, h / group, j, c); };
    expanded.v = [=](auto b, auto h, auto j, auto c) { return m.v(b, h / group, j, c); };
    expect_meet(solve(m), solve(expanded));
  }
}

TEST_P(Identity, PermutingTheRequestsPermutesTheAnswers) {
  Dice dice(7);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"b", "3"}, {"mask", "causal"}, {"sq", "4"}, {"skv", "9"}, {"batch", "packed"}});
    m.params = with(m.params, {{"q_lens", "4,2,3"}, {"kv_lens", "9,2,7"}});
    Meaning permuted = m;
    permuted.params = with(m.params, {{"q_lens", "2,3,4"}, {"kv_lens", "2,7,9"}});
    const auto from = [](std::int64_t b) { return (b + 1) % 3; };
    permuted.q = [=](auto b, auto h, auto i, auto c) { return m.q(from(b), h, i, c); };
    permuted.k = [=](auto b, auto h, auto j, auto c) { return m.k(from(b), h, j, c); };
    permuted.v = [=](auto b, auto h, auto j, auto c) { return m.v(from(b), h, j, c); };
    const Answer straight = solve(m), turned = solve(permuted);
    ASSERT_EQ(straight.size(), turned.size());
    for (const auto& [at, row] : turned) {
      const auto& [b, h, i] = at;
      expect_meet(row, straight.at({from(b), h, i}));
    }
  }
}

TEST_P(Identity, ScalingQDownAndTheSoftmaxScaleUpByAPowerOfTwoChangesNothing) {
  Dice dice(8);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"mask", "causal"}, {"scale", "0.3"}});
    Meaning scaled = m;
    scaled.params.set("scale", "2.4");  // fl32(2.4) = 8 fl32(0.3)
    ASSERT_EQ(attention_params(scaled.params).scale, 8 * attention_params(m.params).scale);
    scaled.q = [=](auto b, auto h, auto i, auto c) { return m.q(b, h, i, c) / 8; };
    expect_meet(solve(m), solve(scaled));
  }
}

TEST_P(Identity, MemoryLayoutAndUnusedBytesDoNotChangeABit) {
  Dice dice(9);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params.set("mask", n % 2 == 0 ? "none" : "causal");
    Meaning strided = m;
    strided.params = with(m.params, {{"layout", "bshd"}, {"pad_rows", "2"}, {"pad_dim", "5"}});
    const Answer contiguous = solve(m);
    EXPECT_TRUE(same_bits(contiguous, solve(strided)));
    strided.params.set("layout", "bhsd");
    EXPECT_TRUE(same_bits(contiguous, solve(strided)));
  }
}

TEST_P(Identity, PackedAndPaddedBatchesEqualEachSequenceAlone) {
  Dice dice(10);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"b", "3"}, {"sq", "5"}, {"skv", "11"}, {"mask", n % 2 == 0 ? "causal" : "bool"}});
    m.params = with(m.params, {{"align", dice.pick({"br", "tl"})}});
    m.mask = keep_some(dice.bits());
    const std::vector<std::int64_t> q_lens{5, 1, 0}, kv_lens{11, 4, 6};
    Meaning packed = m, padded = m;
    packed.params =
        with(m.params, {{"batch", "packed"}, {"q_lens", "5,1,0"}, {"kv_lens", "11,4,6"}, {"pad_rows", "3"}});
    padded.params = with(packed.params, {{"batch", "padded"}, {"layout", "bshd"}});
    Answer alone;
    for (std::int64_t b = 0; b < 2; ++b) {
      Meaning one = m;
      const auto at = static_cast<std::size_t>(b);
      one.params =
          with(m.params, {{"b", "1"}, {"sq", std::to_string(q_lens[at])}, {"skv", std::to_string(kv_lens[at])}});
      one.q = [=](auto, auto h, auto i, auto c) { return m.q(b, h, i, c); };
      one.k = [=](auto, auto h, auto j, auto c) { return m.k(b, h, j, c); };
      one.v = [=](auto, auto h, auto j, auto c) { return m.v(b, h, j, c); };
      one.mask = [=](auto, auto h, auto i, auto j) { return m.mask(b, h, i, j); };
      for (const auto& [row, known] : solve(one)) alone[{b, std::get<1>(row), std::get<2>(row)}] = known;
    }
    EXPECT_TRUE(same_bits(alone, solve(packed)));
    EXPECT_TRUE(same_bits(alone, solve(padded)));
  }
}

TEST_P(Identity, CausalIsAWindowWithoutLeftEndAndWindowEndsDifferByOne) {
  Dice dice(11);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"align", n % 2 == 0 ? "br" : "tl"}, {"sq", n % 3 == 0 ? "9" : "4"}, {"skv", "7"}});
    const auto solved = [&](std::initializer_list<std::pair<std::string, std::string>> items) {
      Meaning variant = m;
      variant.params = with(m.params, items);
      return solve(variant);
    };
    const Answer causal = solved({{"mask", "causal"}}), full = solved({});
    EXPECT_TRUE(same_bits(causal, solved({{"window", "-1,0"}})));
    EXPECT_TRUE(same_bits(causal, solved({{"mask", "causal"}, {"window", "-1,5"}})));
    EXPECT_TRUE(same_bits(full, solved({{"window", "40,40"}})));
    EXPECT_TRUE(same_bits(solved({{"window", "2,1"}}), solved({{"window", "3,1"}, {"window_ends", "left_exclusive"}})));
    EXPECT_FALSE(same_bits(causal, full));
    EXPECT_FALSE(same_bits(solved({{"window", "2,1"}}), solved({{"window", "3,1"}})));
  }
}

TEST_P(Identity, ABooleanOrAdditiveMaskThatSpellsOutCausalityEqualsCausal) {
  Dice dice(12);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const AttentionParams p = attention_params(m.params);
    const bool bottom_right = n % 2 == 0;
    m.params.set("align", bottom_right ? "br" : "tl");
    const std::int64_t shift = bottom_right ? p.len_kv - p.len_q : 0;
    const Entry past = [=](auto, auto, auto i, auto j) { return j <= i + shift ? 1.0 : 0.0; };
    Meaning causal = m, boolean = m, additive = m;
    causal.params.set("mask", "causal");
    boolean.params.set("mask", "bool");
    boolean.mask = past;
    additive.params.set("mask", "additive");
    additive.mask = bias_of(past);
    const Answer expected = solve(causal);
    expect_meet(expected, solve(boolean));
    expect_meet(expected, solve(additive));
  }
}

TEST_P(Identity, IdenticalRequestsAndRepeatedRunsGiveIdenticalBits) {
  Dice dice(13);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"b", "2"}, {"mask", "causal"}});
    for (Entry* entry : {&m.q, &m.k, &m.v})
      *entry = [one = *entry](auto, auto h, auto i, auto c) { return one(0, h, i, c); };
    const Answer first = solve(m);
    EXPECT_TRUE(same_bits(first, solve(m)));
    for (const auto& [at, row] : first)
      EXPECT_TRUE(same_bits(row, first.at({1 - std::get<0>(at), std::get<1>(at), std::get<2>(at)})));
  }
}

TEST_P(Identity, AConstantVComesBackAndAppendedMaskedKeysDoNotCount) {
  Dice dice(14);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.v = [](auto, auto, auto, auto c) { return 1.0 + static_cast<double>(c); };
    const Answer plain = solve(m);
    for (const auto& [at, row] : plain)
      for (std::size_t c = 0; c < row.o.size(); ++c) expect_meet(row.o[c], {1.0 + static_cast<double>(c), 0, kNumber});
    const std::int64_t keys = attention_params(m.params).len_kv;
    Meaning longer = m;
    longer.params = with(m.params, {{"skv", std::to_string(keys + 7)}, {"mask", "bool"}});
    longer.mask = [=](auto, auto, auto, auto j) { return j < keys ? 1.0 : 0.0; };
    longer.v = [=](auto b, auto h, auto j, auto c) { return j < keys ? m.v(b, h, j, c) : -1000.0; };
    expect_meet(plain, solve(longer));
  }
}

}  // namespace
}  // namespace assay
