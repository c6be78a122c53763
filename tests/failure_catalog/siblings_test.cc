// Siblings of a case: what stays, what changes, and that each is a case.
#include "failure_catalog/siblings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cases/materialize.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

const std::string kPacked =
    "attention b=2 hq=2 sq=16 skv=64 d=16 alibi=distance window=24,0 batch=packed q_lens=16,11 kv_lens=64,3 lse=none "
    "q=ones k=normal@9 v=normal@10 slopes.data=slopes set=v[3,0,1]:nan poison=inf";

std::vector<Sibling> of(const std::string& line) { return siblings(parse_case(line)); }

TEST(Siblings, AreDistinctCasesOfOtherSeeds) {
  for (const std::string& line :
       {kPacked, std::string("softmax rows=2 n=6 mask=bool x=normal@95 mask.data=all set=mask[0,3]:0"),
        std::string("merge parts=3 rows=2 dv=8 lse=no o_parts=normal@627 lse_parts=part_holes@43"),
        std::string("attention b=2 hq=4 hkv=2 sq=7 skv=129 dv=32 mask=causal+block block=2,16 descale=block "
                    "scale_block=16 softcap=3 q=normal@1 k=normal@2 v=normal@3")}) {
    const Case c = parse_case(line);
    std::set<std::string> lines{print_case(c)};
    ASSERT_GE(of(line).size(), 4U) << line;
    for (const Sibling& sibling : of(line)) {
      EXPECT_TRUE(lines.insert(print_case(sibling.c)).second) << print_case(sibling.c);
      EXPECT_EQ(parse_case(print_case(sibling.c)), sibling.c);
      EXPECT_FALSE(materialize(sibling.c).inputs.empty());
      EXPECT_TRUE(sibling.what.starts_with("other seeds")) << sibling.what;
      for (const auto& [role, source] : sibling.c.sources)
        for (const auto& [own, before] : c.sources)
          if (own == role && source.recipe == "normal") {
            EXPECT_NE(source.seed, before.seed) << role;
          }
    }
  }
}

TEST(Siblings, KeepMasksLayoutAndLengthsModulo128) {
  const AttentionParams own = attention_params(parse_case(kPacked).params);
  const Sibling first = of(kPacked).front();
  EXPECT_EQ(first.c.overrides.size(), 1U);
  EXPECT_EQ(first.c.poison, Poison::kInf);
  EXPECT_EQ(first.what, "other seeds, 16 heads for 2, the LSE");
  for (const Sibling& sibling : of(kPacked)) {
    const AttentionParams p = attention_params(sibling.c.params);
    EXPECT_EQ(p.batching, own.batching);
    EXPECT_EQ(p.layout, own.layout);
    EXPECT_EQ(p.input, own.input);
    EXPECT_EQ(p.heads_q / p.heads_kv, own.heads_q / own.heads_kv);
    for (std::size_t b = 0; b < 2; ++b) {
      EXPECT_EQ(p.lens_kv[b] % 128, own.lens_kv[b] % 128);
      EXPECT_EQ(p.lens_kv[b] - p.lens_q[b], own.lens_kv[b] - own.lens_q[b]);
    }
  }
}

TEST(Siblings, EndWithPlainValuesAndWithoutOptionsOnLogits) {
  const std::vector<Sibling> all = of(kPacked);
  const auto plain = [](const Sibling& s) { return s.what.find("normal values") != std::string::npos; };
  const auto bare = [](const Sibling& s) { return s.what.find("plain options") != std::string::npos; };
  ASSERT_TRUE(std::any_of(all.begin(), all.end(), plain));
  ASSERT_TRUE(std::any_of(all.begin(), all.end(), bare));
  for (const Sibling& sibling : all) {
    const AttentionParams p = attention_params(sibling.c.params);
    EXPECT_EQ(sibling.c.overrides.empty(), plain(sibling)) << sibling.what;
    EXPECT_EQ(p.alibi == Alibi::kNone, bare(sibling) && sibling.what.find("but alibi") == std::string::npos);
    EXPECT_EQ(p.window_left < 0, bare(sibling) && sibling.what.find("but window") == std::string::npos);
  }
}

TEST(Siblings, AskAboutOneOptionAtATime) {
  const std::vector<Sibling> all =
      of("attention hq=2 sq=4 skv=9 dtype=e4m3 mask=causal+bool descale=block scale_block=8 softcap=3 lse=none");
  for (const auto& [kept, masked, scaled, capped] : {std::tuple{"but softcap", false, false, true},
                                                     {"but descale", false, true, false},
                                                     {"but mask", true, false, false}}) {
    const auto at = std::ranges::find_if(all, [&](const Sibling& s) { return s.what.find(kept) != std::string::npos; });
    ASSERT_NE(at, all.end()) << kept;
    const AttentionParams p = attention_params(at->c.params);
    EXPECT_TRUE(p.causal);
    EXPECT_EQ(p.data_mask == DataMask::kBool, masked) << kept;
    EXPECT_EQ(p.descale == Descale::kBlock, scaled) << kept;
    EXPECT_EQ(p.softcap > 0, capped) << kept;
  }
}

TEST(Siblings, StaySmallAndKeepFiles) {
  const std::string large = "attention b=4 hq=8 sq=512 skv=2048 d=128 q=normal@1 k=normal@2 v=normal@3";
  for (const Sibling& sibling : of(large)) {
    const AttentionParams p = attention_params(sibling.c.params);
    EXPECT_EQ(p.heads_q, 8);
    EXPECT_EQ(p.len_kv, 2048);
  }
}

}  // namespace
}  // namespace assay
