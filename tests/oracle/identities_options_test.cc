// Each option of attention that changes logits, weights or masks, against the same problem said without it.
#include "tests/oracle/identity.h"

namespace assay {
namespace {

INSTANTIATE_TEST_SUITE_P(Evaluators, Identity, evaluators(), evaluator_name);

/// Of the same numbers, with the same key structure.
Answer shifted(const Answer& answer,
               const std::function<double(std::int64_t b, std::int64_t h, std::int64_t i)>& shift) {
  Answer out = answer;
  for (auto& [at, row] : out) {
    const auto& [b, h, i] = at;
    const double by = shift(b, h, i);
    row.lse.radius += 0x1p-50 * (std::abs(row.lse.mid) + std::abs(by));
    row.lse.mid += by;
  }
  return out;
}

TEST_P(Identity, AHugeSoftCapIsNoneAndASmallOneBoundsTheLogits) {
  Dice dice(101);
  for (int n = 0; n < kProblems; ++n) {
    const Meaning m = random_meaning(dice);
    Meaning capped = m;
    capped.params.set("softcap", "3e38");
    const Answer plain = solve(m);
    expect_meet(plain, solve(capped));
    // softcap c at scale t is c times softcap 1 at scale t / c: with c = 2^-20 every logit lies in [-2^-20, 2^-20].
    capped.params.set("softcap", "9.5367431640625e-07");
    const double keys = static_cast<double>(attention_params(m.params).len_kv);
    for (const auto& [at, row] : solve(capped)) EXPECT_NEAR(row.lse.mid, std::log(keys), 0x1p-20);
  }
}

TEST_P(Identity, ASoftCappedLogitIsTheTanhOfTheLogit) {
  Meaning m;
  m.params = make_params({{"d", "1"}, {"dtype", "fp32"}, {"scale", "0.5"}, {"softcap", "3"}});
  m.k = m.v = [](auto, auto, auto, auto) { return 1.0; };
  for (const double q : {0.0, 1e-30, -0.25, 1.0, -7.0, 40.0, 1e30}) {
    m.q = [q](auto, auto, auto, auto) { return q; };
    const Known lse = solve(m).begin()->second.lse;  // of one key: its logit
    const double stored = round_to(Format::kFp32, q), expected = 3 * std::tanh(0.5 * stored / 3);
    EXPECT_NEAR(lse.mid, expected, 1e-15 * std::abs(expected) + lse.radius) << q;
  }
}

TEST_P(Identity, TheFormsOfAlibiGiveOneOutputUnderCausalAndLsesThatDifferByTheRowsConstant) {
  Dice dice(102);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const AttentionParams p = attention_params(m.params);
    m.params = with(m.params, {{"mask", "causal"}, {"alibi", "key"}, {"slopes", n % 2 == 0 ? "head" : "batch_head"}});
    const Entry draw = noise(dice.bits());
    m.slopes = [=](auto b, auto h, auto, auto) { return draw(n % 2 == 0 ? 0 : b, h, 0, 0) / 4; };
    const auto solved = [&](const char* form) {
      Meaning variant = m;
      variant.params.set("alibi", form);
      return solve(variant);
    };
    const Answer key = solved("key");
    const auto slope = [&](auto b, auto h) { return m.slopes(b, h, 0, 0); };
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    expect_meet(shifted(key, [&](auto b, auto h, auto i) { return -slope(b, h) * number(i + p.len_kv - p.len_q); }),
                solved("distance"));
    expect_meet(shifted(key, [&](auto b, auto h, auto i) { return -slope(b, h) * number(i); }), solved("diagonal"));
    expect_meet(shifted(key, [&](auto b, auto h, auto) { return -slope(b, h) * number(p.len_kv - 1); }),
                solved("last"));
  }
}

TEST_P(Identity, AlibiIsAnAdditiveMaskOfSlopeTimesSteps) {
  Dice dice(103);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"batch", "padded"}, {"b", "2"}, {"sq", "5"}, {"skv", "9"}});
    m.params = with(m.params, {{"q_lens", "5,2"}, {"kv_lens", "7,9"}, {"align", n % 2 == 0 ? "br" : "tl"}});
    const std::vector<std::int64_t> lens_q{5, 2}, lens_kv{7, 9};
    m.slopes = [](auto, auto h, auto, auto) { return 0.125 + 0.25 * static_cast<double>(h); };
    const auto steps = [&](const char* form, auto b, auto i, auto j) -> std::int64_t {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t p = i + (n % 2 == 0 ? lens_kv[at] - lens_q[at] : 0);
      if (form == std::string("distance")) return -std::abs(p - j);
      if (form == std::string("key")) return j;
      return form == std::string("diagonal") ? j - i : j - lens_kv[at] + 1;
    };
    for (const char* form : {"distance", "key", "diagonal", "last"}) {
      Meaning alibi = m, additive = m;
      alibi.params.set("alibi", form);
      additive.params.set("mask", "additive");
      additive.mask = [&, form](auto b, auto h, auto i, auto j) {
        return m.slopes(b, h, 0, 0) * static_cast<double>(steps(form, b, i, j));
      };
      expect_meet(solve(alibi), solve(additive));
    }
  }
}

TEST_P(Identity, ASinkIsOneMoreKeyOfThatLogitWithoutAValue) {
  Dice dice(104);
  for (int n = 0; n < kProblems; ++n) {
    const Meaning m = random_meaning(dice);
    const std::int64_t keys = attention_params(m.params).len_kv;
    Meaning sunk = m, extra = m;
    const double high = dice.pick({0.0, 60.0, -60.0, 900.0, -900.0});
    const Entry draw = noise(dice.bits());
    sunk.sink = [=](auto, auto h, auto, auto) { return high + draw(0, h, 0, 0); };
    sunk.params = with(m.params, {{"sink", "in_lse"}, {"lse", n % 2 == 0 ? "e" : "2"}});
    extra.params =
        with(m.params, {{"skv", std::to_string(keys + 1)}, {"mask", "additive"}, {"lse", n % 2 == 0 ? "e" : "2"}});
    const auto appended = [keys](const Entry& entry) -> Entry {
      return [=](auto b, auto h, auto j, auto c) { return j < keys ? entry(b, h, j, c) : 0.0; };
    };
    extra.k = appended(m.k);
    extra.v = appended(m.v);
    extra.mask = [=](auto b, auto h, auto, auto j) { return j < keys ? 0.0 : sunk.sink(b, h, 0, 0); };
    const Answer in = solve(sunk), as_key = solve(extra);
    expect_meet(in, as_key);
    sunk.params.set("sink", "out_of_lse");
    Meaning none = m;
    none.params.set("lse", n % 2 == 0 ? "e" : "2");
    const Answer out = solve(sunk), without = solve(none);
    for (const auto& [at, row] : out) {
      expect_meet(row.lse, without.at(at).lse);
      for (std::size_t c = 0; c < row.o.size(); ++c) expect_meet(row.o[c], in.at(at).o[c]);
    }
  }
}

TEST_P(Identity, ASinkOfMinusInfinityIsNone) {
  Dice dice(105);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params = with(m.params, {{"mask", "causal"}, {"align", "tl"}, {"sq", "9"}, {"skv", "4"}, {"empty", "nan"}});
    Meaning sunk = m;
    sunk.params.set("sink", n % 2 == 0 ? "in_lse" : "out_of_lse");
    sunk.sink = [](auto, auto, auto, auto) { return -std::numeric_limits<double>::infinity(); };
    EXPECT_TRUE(same_bits(solve(m), solve(sunk)));
  }
}

TEST_P(Identity, SegmentsAreABlockDiagonalMaskAndSegmentsOfTheirOwnAttendAlone) {
  Dice dice(106);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const std::int64_t cut_q = dice.between(0, 3), cut_kv = dice.between(0, 8);
    Meaning segments = m, boolean = m;
    segments.params = with(m.params, {{"segments", "1"}, {"mask", n % 2 == 0 ? "none" : "causal"}});
    segments.seg_q = [=](auto, auto, auto i, auto) { return i < cut_q ? -7.0 : 12.0; };
    segments.seg_kv = [=](auto, auto, auto j, auto) { return j < cut_kv ? -7.0 : j % 5 == 4 ? 3.0 : 12.0; };
    boolean.params.set("mask", n % 2 == 0 ? "bool" : "causal+bool");
    boolean.mask = [=](auto b, auto, auto i, auto j) {
      return segments.seg_q(b, 0, i, 0) == segments.seg_kv(b, 0, j, 0) ? 1.0 : 0.0;
    };
    EXPECT_TRUE(same_bits(solve(segments), solve(boolean)));
  }
}

TEST_P(Identity, ABlockMaskAndListsOfKeysAreTheBooleanMaskTheySpell) {
  Dice dice(107);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    const std::string causal = n % 2 == 0 ? "causal+" : "";
    const std::int64_t rows = dice.between(1, 3), columns = dice.between(1, 7),
                       keys = attention_params(m.params).len_kv;
    const Entry keep = keep_some(dice.bits());
    Meaning block = m, boolean = m, list = m;
    block.params =
        with(m.params, {{"mask", causal + "block"}, {"block", std::to_string(rows) + "," + std::to_string(columns)}});
    block.mask = keep;
    boolean.params.set("mask", causal + "bool");
    boolean.mask = [=](auto b, auto h, auto i, auto j) { return keep(b, h, i / rows, j / columns); };
    list.params = with(m.params, {{"mask", causal + "list"}, {"list", std::to_string(keys + 3)}});
    // Entry n names key (7 n + i) mod (keys + 3) if that one is kept: each once (keys + 3 < 35), scattered, with gaps.
    list.mask = [=](auto b, auto h, auto i, auto entry) {
      const std::int64_t count = keys + 3, step = count % 7 == 0 ? 5 : 7, key = (entry * step + i) % count;
      if (key >= keys) return key == keys ? -1.0 : key == keys + 1 ? static_cast<double>(keys) : 2147483647.0;
      return boolean.mask(b, h, i, key) != 0 ? static_cast<double>(key) : -1.0;
    };
    const Answer expected = solve(boolean);
    EXPECT_TRUE(same_bits(expected, solve(block)));
    EXPECT_TRUE(same_bits(expected, solve(list)));
  }
}

TEST_P(Identity, ScaleFactorsAreTheValuesTheyStandFor) {
  Dice dice(108);
  for (const char* dtype : {"e4m3", "e5m2", "bf16"})
    for (const char* form : {"tensor", "head", "block"}) {
      Meaning m = random_meaning(dice);
      m.params = with(m.params, {{"dtype", dtype}, {"out", "fp32"}, {"softcap", "3"}, {"sink", "in_lse"}});
      m.sink = [](auto, auto h, auto, auto) { return 0.5 * static_cast<double>(h); };
      const AttentionParams p = attention_params(m.params);
      const auto coarse = [&](std::uint64_t seed) -> Entry {  // 3 bits: every format holds it
        return
            [draw = noise(seed)](auto b, auto h, auto i, auto c) { return round_to(Format::kE5m2, draw(b, h, i, c)); };
      };
      m.q = coarse(dice.bits()), m.k = coarse(dice.bits()), m.v = coarse(dice.bits());
      Meaning plain = m;
      m.params.set("descale", form);
      const bool block = form == std::string("block"), head = form == std::string("head");
      if (block) m.params.set("scale_block", "3");
      const auto factor = [&](std::uint64_t seed) -> Entry {  // 8 bits
        return [draw = noise(seed)](auto b, auto h, auto i, auto) { return 0.25 + std::abs(draw(b, h, i, 0)); };
      };
      m.q_scale = factor(dice.bits()), m.k_scale = factor(dice.bits()), m.v_scale = factor(dice.bits());
      const std::int64_t group = p.heads_q / p.heads_kv;
      const auto scaled = [=](const Entry& values, const Entry& scale, std::int64_t per_factor) -> Entry {
        return [=](auto b, auto h, auto i, auto c) {
          const double f = block ? scale(b, h, i / 3, 0) : head ? scale(b, h / per_factor, 0, 0) : scale(0, 0, 0, 0);
          return f * values(b, h, i, c);
        };
      };
      plain.params.set("dtype", "fp32");
      plain.q = scaled(m.q, m.q_scale, group);
      plain.k = scaled(m.k, m.k_scale, 1);
      plain.v = scaled(m.v, m.v_scale, 1);
      expect_meet(solve(plain), solve(m));
    }
}

TEST_P(Identity, MlaShapesWithValuesInsideKeysEqualAnExplicitCopy) {
  for (const auto& [d, dv] : {std::pair{"576", "512"}, {"192", "128"}}) {
    Meaning m;
    m.params =
        make_params({{"hq", "3"}, {"hkv", "1"}, {"sq", "2"}, {"skv", "40"}, {"d", d}, {"dv", dv}, {"mask", "causal"}});
    m.q = noise(7), m.k = noise(8), m.v = m.k;
    Meaning inside = m;
    inside.params = with(m.params, {{"v_from", "k"}});
    const Answer copy = solve(m);
    EXPECT_TRUE(same_bits(copy, solve(inside)));
    inside.params = with(inside.params, {{"kv", "vllm"}, {"page", "16"}, {"page_seed", "3"}});
    EXPECT_TRUE(same_bits(copy, solve(inside)));
    ASSERT_EQ(copy.begin()->second.o.size(), static_cast<std::size_t>(std::atoi(dv)));
  }
}

}  // namespace
}  // namespace assay
