// Paged attention kernels: the same bits from every store, and no look at a table entry that names no page of the
// sequence.
#include <gtest/gtest.h>

#include "tests/kernels/attention_kernels.h"

namespace assay {
namespace {

constexpr std::int32_t kHostile = std::numeric_limits<std::int32_t>::max();

/// O and LSE of a call as bits.
std::vector<std::vector<std::byte>> bits(const std::string& kernel, const Scenario& s) {
  const RunOutcome outcome = run(kernel, s);
  EXPECT_EQ(outcome.status, RunStatus::kOk) << kernel << ": " << outcome.reason;
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : outcome.outputs) all.push_back(t.bytes);
  return all;
}

struct Store {
  const char* kernel;
  const char* text;
};

const std::string kProblem =
    "b=3 hq=2 hkv=1 sq=20 skv=330 d=16 q_lens=1,20,9 batch=padded mask=causal window=290,-1 dtype=bf16 ";

void expect_same_bits(const std::vector<Store>& stores) {
  const std::vector<std::vector<std::byte>> first = bits(stores[0].kernel, Scenario(kProblem + stores[0].text));
  for (const Store& store : stores) {
    const Scenario s(kProblem + store.text);
    EXPECT_TRUE(bits(store.kernel, s) == first) << store.kernel << ' ' << store.text;
  }
}

TEST(Pages, GiveTheNaiveKernelTheBitsOfContiguousKeys) {
  expect_same_bits({{"naive_bf16", "kv_lens=330,77,140"},
                    {"naive_bf16", "kv_lens=330,77,140 kv=vllm page=16 page_seed=3"},
                    {"naive_bf16", "kv_lens=330,77,140 kv=vllm_x page=8"},
                    {"naive_bf16", "kv_lens=330,77,140 kv=nhd page=1 page_seed=4"},
                    {"naive_bf16", "kv_lens=330,77,140 kv=hnd page=1024 spare_pages=2"}});
}

TEST(Prefixes, GiveTheBitsOfContiguousKeysToOneSequence) {
  for (const std::string kernel : {"naive_bf16", "fa1_bf16", "fa2_bf16", "fa4_bf16", "split_bf16"}) {
    const std::string text = "b=1 hq=2 hkv=1 sq=20 skv=280 d=16 mask=causal dtype=bf16";
    const std::vector<std::vector<std::byte>> whole = bits(kernel, Scenario(text));
    for (const std::string prefix : {" prefix=1", " prefix=70 layout=bhds", " prefix=280 pad_dim=3"}) {
      const RunOutcome outcome = run(kernel, Scenario(text + prefix));
      ASSERT_EQ(outcome.status, RunStatus::kOk) << outcome.reason;
      const Scenario s(text + prefix), plain(text);
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t i = 0; i < 20; ++i)
          for (std::int64_t c = 0; c < 16; ++c)
            ASSERT_EQ(outcome.outputs[0].view().code(s.at(s.outputs[0], 0, h, i, c)),
                      load_code(whole[0].data(), Format::kBf16, plain.at(plain.outputs[0], 0, h, i, c)))
                << kernel << prefix;
      EXPECT_TRUE(outcome.outputs[1].bytes == whole[1]) << kernel << prefix;
    }
  }
}

TEST(Pages, GiveFlashAttention2TheBitsOfContiguousKeys) {
  expect_same_bits({{"fa2_bf16", "kv_lens=330,77,140"},
                    {"fa2_bf16", "kv_lens=330,77,140 kv=vllm page=256"},
                    {"fa2_bf16", "kv_lens=330,77,140 kv=vllm page=3 page_seed=2"}});
}

TEST(Pages, GiveSplitDecodingTheBitsOfContiguousKeys) {
  expect_same_bits({{"split_bf16", "kv_lens=330,77,140"},
                    {"paged_split_bf16", "kv_lens=330,77,140 kv=vllm page=16 page_seed=9"},
                    {"paged_split_bf16", "kv_lens=330,77,140 kv=vllm_x page=5"},
                    {"paged_split_bf16", "kv_lens=330,77,140 kv=nhd page=100"},
                    {"paged_split_bf16", "kv_lens=330,77,140 kv=hnd page=2 page_seed=1"}});
}

TEST(Pages, GiveBothDecodersTheSameBitsInEveryLayout) {
  expect_same_bits({{"paged_vllm_bf16", "kv_lens=330,77,140 kv=vllm page=16 page_seed=9"},
                    {"paged_vllm_bf16", "kv_lens=330,77,140 kv=vllm_x page=32"},
                    {"paged_vllm_bf16", "kv_lens=330,77,140 kv=vllm page=1"},
                    {"paged_flashinfer_bf16", "kv_lens=330,77,140 kv=nhd page=7 page_seed=5"},
                    {"paged_flashinfer_bf16", "kv_lens=330,77,140 kv=hnd page=1024"}});
}

TEST(Pages, GiveTheCascadeTheBitsOfContiguousKeys) {
  expect_same_bits({{"cascade_bf16", "kv_lens=330,77,140 prefix=64"},
                    {"cascade_bf16", "kv_lens=330,77,140 prefix=64 kv=vllm page=16 page_seed=3"},
                    {"cascade_bf16", "kv_lens=330,77,140 prefix=64 kv=hnd page=32"},
                    {"cascade_bf16", "kv_lens=330,77,140 prefix=64 kv=vllm_x page=4"}});
}

/// Fills every entry that names no page of its sequence with a page that does not exist.
void make_hostile(Scenario& s) {
  const bool table = s.p.kv_store == KvStore::kVllm || s.p.kv_store == KvStore::kVllmX;
  Tensor& t = s.input(table ? "block_table" : "kv_indices");
  const TensorView view = t.view();
  int hostile = 0;
  for (std::int64_t b = 0; table && b < s.p.batch; ++b)
    for (std::int64_t n = (s.len(false, b) + s.p.page - 1) / s.p.page; n < view.extent(1); ++n, ++hostile)
      t.output().set_code(view.element(b, n), static_cast<std::uint64_t>(kHostile));
  const std::int64_t listed = table ? 0 : static_cast<std::int64_t>(s.entry_of("kv_indptr", s.p.batch));
  for (std::int64_t n = listed; !table && n < view.extent(0); ++n, ++hostile)
    t.output().set_code(view.element(n), static_cast<std::uint64_t>(kHostile));
  EXPECT_GT(hostile, 0) << "the case must have such entries";
}

TEST(Pages, AreNeverLookedUpBehindTheLastOne) {
  for (const Store& store : std::initializer_list<Store>{{"naive_bf16", "kv=vllm page=16"},
                                                         {"naive_bf16", "kv=hnd page=16"},
                                                         {"fa2_bf16", "kv=vllm page=16"},
                                                         {"paged_vllm_bf16", "kv=vllm page=16"},
                                                         {"paged_vllm_bf16", "kv=vllm_x page=8"},
                                                         {"paged_flashinfer_bf16", "kv=nhd page=16"},
                                                         {"paged_flashinfer_bf16", "kv=hnd page=1"},
                                                         {"paged_split_bf16", "kv=vllm page=64"},
                                                         {"paged_split_bf16", "kv=nhd page=64"},
                                                         {"cascade_bf16", "kv=vllm page=16 prefix=16"}}) {
    // Lengths on, before and behind a page's end, and a mean over all keys of an empty row.
    Scenario s("b=3 hq=2 hkv=1 sq=40 skv=320 d=16 kv_lens=320,16,65 mask=causal empty=mean dtype=bf16 " +
               std::string(store.text));
    const std::vector<std::vector<std::byte>> before = bits(store.kernel, s);
    make_hostile(s);
    EXPECT_TRUE(bits(store.kernel, s) == before) << store.kernel << ' ' << store.text;
  }
}

TEST(Pages, ThatDoNotExistCrashInWords) {
  for (const Store& store : std::initializer_list<Store>{{"paged_vllm_bf16", "kv=vllm"}, {"naive_bf16", "kv=nhd"}}) {
    Scenario s("b=1 sq=1 skv=40 d=16 page=16 dtype=bf16 " + std::string(store.text));
    Tensor& t = s.input(s.p.kv_store == KvStore::kVllm ? "block_table" : "kv_indices");
    t.output().set_code(2, static_cast<std::uint64_t>(kHostile));
    const RunOutcome outcome = run(store.kernel, s);
    EXPECT_EQ(outcome.status, RunStatus::kCrashed);
    EXPECT_NE(outcome.reason.find("2147483647 does not exist"), std::string::npos) << outcome.reason;
  }
}

TEST(Pages, ListedBeyondTheListCrashInWords) {
  Scenario s("b=2 sq=1 skv=40 d=16 kv=nhd dtype=bf16");
  s.input("kv_indptr").output().set_code(2, 99);
  EXPECT_NE(run("naive_bf16", s).reason.find("kv_indptr"), std::string::npos);
  Scenario t("b=2 sq=1 skv=40 d=16 kv=hnd dtype=bf16");
  t.input("kv_last_page_len").output().set_code(1, 17);
  EXPECT_NE(run("naive_bf16", t).reason.find("kv_last_page_len"), std::string::npos);
  Scenario u("b=2 sq=1 skv=40 d=16 kv=vllm dtype=bf16");
  u.input("seqlens_kv").output().set_code(1, 10'000);
  EXPECT_NE(run("naive_bf16", u).reason.find("seqlens_kv"), std::string::npos);
}

}  // namespace
}  // namespace assay
