// Where keys, values and queries lie in memory does not change a bit of the answer: pages, tables, prefixes, views.
#include "tests/oracle/identity.h"

namespace assay {
namespace {

INSTANTIATE_TEST_SUITE_P(Evaluators, Identity, evaluators(), evaluator_name);

using Items = std::initializer_list<std::pair<std::string, std::string>>;

/// Three sequences of 0 to 19 keys, with d a multiple of 16 bytes in every format.
Meaning ragged(Dice& dice) {
  Meaning m = random_meaning(dice);
  m.params =
      with(m.params, {{"b", "3"}, {"sq", "3"}, {"skv", "19"}, {"d", "16"}, {"batch", "padded"}, {"mask", "causal"}});
  m.params = with(m.params, {{"q_lens", "3,2,3"}, {"kv_lens", dice.pick({"19,0,7", "16,19,1", "0,0,4", "3,16,19"})}});
  return m;
}

TEST_P(Identity, PagesInEveryStoreOfEverySizeAndOrderEqualContiguousKeys) {
  Dice dice(201);
  for (const char* page : {"1", "2", "16", "1024"}) {
    const Meaning m = ragged(dice);
    const Answer contiguous = solve(m);
    for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"})
      for (const auto& [seed, spare] : {std::pair{"0", "0"}, {"5", "3"}}) {
        Meaning paged = m;
        paged.params = with(m.params, {{"kv", store}, {"page", page}, {"page_seed", seed}, {"spare_pages", spare}});
        EXPECT_TRUE(same_bits(contiguous, solve(paged))) << store << " page " << page << " seed " << seed;
        paged.params = with(paged.params, {{"pad_dim", "3"}, {"offset", "7"}, {"layout", "bshd"}});
        EXPECT_TRUE(same_bits(contiguous, solve(paged)))
            << store << " page " << page << " seed " << seed << " with gaps";
      }
  }
}

TEST_P(Identity, WhatStandsBehindTheLastPageOfATableDoesNotMatter) {
  Dice dice(202);
  for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"}) {
    const Meaning m = ragged(dice);
    const Answer contiguous = solve(m);
    for (const char* pad : {"zero", "minus_one", "huge", "shared"}) {
      Meaning paged = m;
      paged.params = with(m.params, {{"kv", store}, {"page", "4"}, {"page_seed", "9"}, {"table_pad", pad}});
      EXPECT_TRUE(same_bits(contiguous, solve(paged))) << store << " " << pad;
    }
  }
}

TEST_P(Identity, PackedAndDenseQueriesReadPagesAsPaddedOnesDo) {
  Dice dice(203);
  for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"}) {
    Meaning m = ragged(dice);
    m.params = with(m.params, {{"q_lens", "3,3,3"}, {"kv", store}, {"page", "4"}, {"page_seed", "2"}});
    Meaning packed = m, dense = m;
    packed.params.set("batch", "packed");
    dense.params.set("batch", "dense");
    dense.params.erase("q_lens");
    const Answer padded = solve(m);
    EXPECT_TRUE(same_bits(padded, solve(packed))) << store;
    EXPECT_TRUE(same_bits(padded, solve(dense))) << store;
  }
}

TEST_P(Identity, ASharedPrefixIsTheSameKeysInFrontOfEverySequence) {
  Dice dice(204);
  for (const char* batching : {"dense", "padded", "packed"}) {
    Meaning m = random_meaning(dice);
    m.params =
        with(m.params, {{"b", "3"}, {"sq", "3"}, {"skv", "19"}, {"d", "16"}, {"batch", batching}, {"mask", "causal"}});
    if (batching != std::string("dense")) m.params = with(m.params, {{"q_lens", "3,0,2"}, {"kv_lens", "19,8,12"}});
    for (Entry* entry : {&m.k, &m.v})
      *entry = [one = *entry](auto b, auto h, auto j, auto c) { return one(j < 8 ? 0 : b, h, j, c); };
    const Answer concatenated = solve(m);
    const auto solved = [&](Items items) {
      Meaning variant = m;
      variant.params = with(m.params, items);
      return solve(variant);
    };
    EXPECT_TRUE(same_bits(concatenated, solved({{"prefix", "8"}})));
    EXPECT_TRUE(same_bits(concatenated, solved({{"prefix", "3"}, {"pad_dim", "2"}, {"offset", "1"}})));
    for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"})
      EXPECT_TRUE(same_bits(concatenated, solved({{"prefix", "8"}, {"kv", store}, {"page", "4"}, {"page_seed", "4"}})));
    EXPECT_TRUE(
        same_bits(solved({{"v_from", "k"}, {"dv", "5"}}), solved({{"v_from", "k"}, {"dv", "5"}, {"prefix", "8"}})));
  }
}

TEST_P(Identity, TransposedOffsetAndExpandedViewsEqualADenseCopy) {
  Dice dice(205);
  for (int n = 0; n < kProblems; ++n) {
    Meaning m = random_meaning(dice);
    m.params.set("mask", "causal");
    const auto solved = [&](Items items) {
      Meaning variant = m;
      variant.params = with(m.params, items);
      return solve(variant);
    };
    const Answer dense = solve(m);
    EXPECT_TRUE(same_bits(dense, solved({{"layout", "bhds"}})));
    EXPECT_TRUE(same_bits(dense, solved({{"layout", "bhds"}, {"offset", "5"}, {"pad_rows", "1"}, {"pad_dim", "2"}})));
    EXPECT_TRUE(same_bits(dense, solved({{"offset", "3"}})));
    for (const auto& [view, layout] : {std::pair{"batch", "bhsd"}, {"heads", "bshd"}, {"heads", "bhds"}}) {
      const bool batch = view == std::string("batch");
      Meaning copy = m, expanded = m;
      expanded.params = with(m.params, {{"expand", view}, {"layout", layout}});
      for (Entry* entry : {&copy.k, &copy.v})
        *entry = [=, one = *entry](auto b, auto h, auto j, auto c) { return one(batch ? 0 : b, batch ? h : 0, j, c); };
      EXPECT_TRUE(same_bits(solve(copy), solve(expanded))) << view;
    }
  }
}

TEST_P(Identity, ValuesInsideKeysEqualAnExplicitCopy) {
  Dice dice(206);
  for (const char* store : {"contiguous", "vllm", "vllm_x", "nhd", "hnd"}) {
    Meaning m = ragged(dice);
    m.params = with(m.params, {{"dtype", "bf16"}, {"dv", "11"}, {"kv", store}});
    m.v = m.k;
    Meaning inside = m;
    inside.params.set("v_from", "k");
    EXPECT_TRUE(same_bits(solve(m), solve(inside))) << store;
  }
}

}  // namespace
}  // namespace assay
