// A token's vector has the same values wherever a case stores it, and storage that no token uses holds the poison.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases/materialize.h"
#include "cases/poison.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/problem.h"

namespace assay {
namespace {

/// Everything that the oracle reads of a problem: keys, values, queries, row by row.
struct Reading {
  std::vector<std::vector<double>> q, k, v;
  bool operator==(const Reading&) const = default;
};

Reading read(const std::string& line) {
  const Problem raw = materialize(parse_case(line));
  const AttentionProblem problem(raw);
  const AttentionParams& p = problem.params();
  Reading out;
  for (const AttentionRow& row : problem.rows())
    problem.load_q(row, out.q.emplace_back(static_cast<std::size_t>(p.dim_qk)));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t g = 0; g < p.heads_kv; ++g)
      for (std::int64_t j = 0; j < problem.kv_len(b); ++j) {
        problem.load_k(b, g, j, out.k.emplace_back(static_cast<std::size_t>(p.dim_qk)));
        problem.load_v(b, g, j, out.v.emplace_back(static_cast<std::size_t>(p.dim_v)));
      }
  return out;
}

const char* const kRecipes[] = {
    "q=normal@1 k=normal@2 v=normal@3",
    "q=probe@1 k=rising(2,4)@2 v=tags",
    "q=probe@1 k=falling(1,8)@2 v=cancelling_pairs@4",
    "q=probe@1 k=attention_sink(9,2)@2 v=sink_values@4",
    "q=one_hot k=one_hot v=one_hot",
};

TEST(Stores, PagedKeysHaveTheValuesOfContiguousOnes) {
  const std::string shape = "attention b=3 hq=2 sq=4 skv=21 d=16 dv=8 batch=padded q_lens=4,1,2 kv_lens=21,0,6 ";
  for (const std::string recipes : kRecipes) {
    const Reading contiguous = read(shape + recipes);
    for (const char* dtype : {"bf16", "e4m3"})
      for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"})
        for (const char* page : {"1", "4", "16", "64"}) {
          const std::string kind = std::string(" dtype=") + dtype + " kv=" + store + " page=" + page;
          const Reading paged = read(shape + recipes + kind + " page_seed=3 spare_pages=2 pad_dim=3 offset=5");
          ASSERT_EQ(paged, dtype == std::string("bf16") ? contiguous : read(shape + recipes + " dtype=e4m3"))
              << recipes << kind;
        }
  }
}

TEST(Stores, SharedPrefixesAndViewsHaveTheValuesOfThePlainCase) {
  for (const std::string recipes : kRecipes) {
    const std::string shape = "attention hq=2 sq=4 skv=21 d=16 dv=8 " + recipes;
    const Reading plain = read(shape);
    EXPECT_EQ(read(shape + " layout=bhds pad_dim=1 offset=3"), plain) << recipes;
    if (recipes.find("tags") != std::string::npos) continue;  // tags count places in their own tensor
    EXPECT_EQ(read(shape + " prefix=8"), plain) << recipes;
    EXPECT_EQ(read(shape + " prefix=8 batch=packed"), plain) << recipes;
    EXPECT_EQ(read(shape + " prefix=8 kv=hnd page=4 page_seed=1"), plain) << recipes;
  }
}

TEST(Stores, AllSequencesStartWithTheKeysOfAPagedOrSeparatePrefix) {
  const std::string shape = "attention b=3 sq=1 skv=12 d=16 prefix=8 batch=padded kv_lens=12,8,9";
  const Reading separate = read(shape), paged = read(shape + " kv=vllm page=4 page_seed=7");
  EXPECT_EQ(separate, paged);
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_EQ(separate.k[j], separate.k[12 + j]);
    EXPECT_EQ(separate.k[j], separate.k[20 + j]);
  }
  EXPECT_NE(separate.k[8], separate.k[28]);  // key 8 of sequences 0 and 2
}

TEST(Stores, AnExpandedTensorKeepsItsValuesInASmallerBatch) {
  const Reading two = read("attention b=2 sq=1 skv=5 d=8 expand=batch"), one = read("attention sq=1 skv=5 d=8");
  EXPECT_EQ(std::vector(two.k.begin(), two.k.begin() + 5), one.k);
  EXPECT_EQ(std::vector(two.k.begin() + 5, two.k.end()), one.k);
}

TEST(Stores, EverySlotOutsideTheSequencesHoldsThePoison) {
  for (const char* store : {"vllm", "vllm_x", "nhd", "hnd"}) {
    const Case c =
        parse_case(std::string("attention b=2 hq=2 sq=1 skv=9 d=8 dv=3 kv_lens=9,2 spare_pages=2 page=4 page_seed=3 "
                               "pad_dim=1 offset=2 k=ones v=ones poison=tag kv=") +
                   store);
    const Problem problem = materialize(c);
    for (const auto& [role, channels] : {std::pair{"k", 8}, {"v", 3}})
      for (const Tensor& tensor : problem.inputs) {
        if (tensor.layout.role != role) continue;
        std::int64_t ones = 0, poison = 0;
        for (std::int64_t i = 0; i < tensor.layout.storage; ++i) {
          ones += tensor.view().value(i) == 1;
          poison += tensor.view().code(i) == poison_code(tensor.layout.format, c.poison);
        }
        EXPECT_EQ(ones, 11 * 2 * channels) << store;
        EXPECT_EQ(ones + poison, tensor.layout.storage) << store;
      }
  }
}

TEST(Stores, TheScaleOfALogitIsThatOfAllChannelsWhereverTheyLie) {
  for (const char* store : {"contiguous", "vllm_x", "nhd"}) {
    const Reading reading =
        read(std::string("attention skv=3 d=32 dtype=bf16 q=probe k=logit_offset(8,0)@1 kv=") + store);
    for (const std::vector<double>& k : reading.k) EXPECT_NEAR((k[0] + k[1]) * 64 / std::sqrt(32.0), 8, 1e-3) << store;
  }
}

std::vector<std::int64_t> values_of(const std::string& line, const std::string& role) {
  for (const InputSpec& spec : attention_inputs(parse_case(line).params))
    if (spec.layout.role == role) return spec.values;
  return {};
}

TEST(Stores, TablesNameTheirPagesAndThenWhatIsAskedFor) {
  const std::string vllm = "attention b=3 sq=1 skv=9 d=8 kv=vllm page=4 kv_lens=9,0,5";
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(values_of(vllm, "block_table"), (Values{0, 1, 2, 0, 0, 0, 0, 0, 3, 4, 0, 0}));
  EXPECT_EQ(values_of(vllm + " table_pad=minus_one", "block_table"),
            (Values{0, 1, 2, -1, -1, -1, -1, -1, 3, 4, -1, -1}));
  EXPECT_EQ(values_of(vllm + " table_pad=shared", "block_table"), (Values{0, 1, 2, 4, 4, 4, 4, 4, 3, 4, 2, 2}));
  EXPECT_EQ(values_of(vllm + " table_pad=huge", "block_table")[3], 0x7fffffff);
  EXPECT_EQ(values_of(vllm, "seqlens_kv"), (Values{9, 0, 5}));
  const std::string lists = "attention b=3 sq=1 skv=9 d=8 kv=nhd page=4 kv_lens=9,0,8";
  EXPECT_EQ(values_of(lists, "kv_indptr"), (Values{0, 3, 3, 5}));
  EXPECT_EQ(values_of(lists, "kv_indices"), (Values{0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(values_of(lists, "kv_last_page_len"), (Values{1, 0, 4}));
  EXPECT_EQ(values_of(lists + " table_pad=huge", "kv_indices").back(), 0x7fffffff);
}

TEST(Stores, PagesGoInAnOrderThatTheSeedDecidesAndAPrefixIsStoredOnce) {
  const std::string line = "attention b=2 sq=1 skv=40 d=8 kv=nhd page=1 spare_pages=10 prefix=5 page_seed=";
  const std::vector<std::int64_t> one = values_of(line + "1", "kv_indices"), two = values_of(line + "2", "kv_indices");
  EXPECT_NE(one, two);
  EXPECT_EQ(one, values_of(line + "1", "kv_indices"));
  for (const auto& indices : {one, two}) {
    EXPECT_TRUE(std::equal(indices.begin(), indices.begin() + 5, indices.begin() + 40));
    std::vector<std::int64_t> distinct(indices.begin(), indices.end() - 1);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    EXPECT_EQ(distinct.size(), 75U);
    EXPECT_LT(distinct.back(), 85);
  }
}

}  // namespace
}  // namespace assay
