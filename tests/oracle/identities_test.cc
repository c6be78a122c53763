// Relations that attention must satisfy whatever the answer is, checked on the truth of both evaluators; no kernel
// involved.
#include "tests/oracle/identity.h"

namespace assay {
namespace {

INSTANTIATE_TEST_SUITE_P(Evaluators, Identity, evaluators(), evaluator_name);

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
