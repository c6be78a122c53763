// Attention's conventions in case lines: canonical text, what is refused and why, which tensors they bring.
#include <gtest/gtest.h>

#include <random>

#include "cases/case.h"
#include "cases/materialize.h"
#include "oracle/error.h"
#include "oracle/ops/attention/layouts.h"

namespace assay {
namespace {

std::string canonical(const std::string& params) { return print_case(parse_case("attention " + params)); }

std::string error_of(const std::string& params) {
  try {
    parse_case("attention " + params);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Conventions, DefaultsAndSpellingsLeaveTheLine) {
  const std::string plain = canonical("");
  for (const char* params : {"softcap=0 alibi=none sink=none segments=0 descale=none",
                             "softcap=-0 prefix=0 kv=contiguous v_from=own expand=none offset=0",
                             "dtype=bf16 out=bf16 dv=64 d=64", "softcap=0e5"})
    EXPECT_EQ(canonical(params), plain) << params;
  EXPECT_EQ(canonical("dtype=e4m3 out=bf16"), canonical("dtype=e4m3"));
  EXPECT_NE(canonical("dtype=e4m3 out=fp16").find("out=fp16"), std::string::npos);
  EXPECT_EQ(canonical("kv=vllm page=16 page_seed=0 table_pad=zero kv_lens=1"), canonical("kv=vllm"));
  EXPECT_EQ(canonical("mask=block block=64,64"), canonical("mask=block"));
  EXPECT_EQ(canonical("softcap=030.0"), canonical("softcap=30"));
  EXPECT_NE(canonical("mask=causal+list list=3 skv=7")
                .find("mask=causal+list list=3 q=normal@1 k=normal@2 v=normal@3 "
                      "mask.data=indices(7)@4"),
            std::string::npos);
}

TEST(Conventions, ThePrefixTakesTheSourceOfTheKeysUnlessItHasOneOfItsOwn) {
  EXPECT_NE(canonical("skv=8 prefix=4 k=ties@9 v=ones").find("k_prefix=ties@9 v_prefix=ones"), std::string::npos);
  EXPECT_NE(canonical("skv=8 prefix=4 k=ties@9 k_prefix=ones").find("k_prefix=ones"), std::string::npos);
}

TEST(Conventions, EachOptionBringsItsTensors) {
  const auto roles = [](const std::string& params) {
    std::string text;
    for (const InputSpec& spec : attention_inputs(parse_case("attention " + params).params)) {
      text += (text.empty() ? "" : " ") + spec.layout.role + "[";
      for (std::size_t axis = 0; axis < spec.layout.shape.size(); ++axis)
        text += (axis > 0 ? "," : "") + std::to_string(spec.layout.shape[axis]);
      text += "]" + spec.axes;
    }
    return text;
  };
  const std::string q = "q[2,4,3,64]bhsc ", sizes = "b=2 hq=4 hkv=2 sq=3 skv=10 dv=32 ";
  EXPECT_EQ(roles(sizes + "prefix=4"), q + "k[2,2,6,64]bhsc v[2,2,6,32]bhsc k_prefix[2,4,64]hsc v_prefix[2,4,32]hsc");
  EXPECT_EQ(roles(sizes + "v_from=k"), q + "k[2,2,10,64]bhsc");
  EXPECT_EQ(roles(sizes + "kv=vllm page=4"), q + "k[6,4,2,64]pohc v[6,4,2,32]pohc block_table[2,4]xx seqlens_kv[2]x");
  EXPECT_EQ(roles(sizes + "kv=vllm_x page=4 dtype=fp32"),
            q + "k[6,2,16,4,4]phgoc v[6,2,32,4]phco block_table[2,4]xx seqlens_kv[2]x");
  EXPECT_EQ(roles(sizes + "kv=vllm_x page=4 dtype=e5m2").substr(q.size(), 18), "k[6,2,4,4,16]phgoc");
  EXPECT_EQ(roles(sizes + "kv=nhd page=4"),
            q + "k[6,4,2,64]pohc v[6,4,2,32]pohc kv_indptr[3]x kv_indices[7]x kv_last_page_len[2]x");
  EXPECT_EQ(roles(sizes + "kv=hnd page=1024 spare_pages=1").substr(q.size(), 22), "k[3,2,1024,64]phoc v[3");
  const std::string plain = q + "k[2,2,10,64]bhsc v[2,2,10,32]bhsc ";
  EXPECT_EQ(roles(sizes + "alibi=key sink=in_lse segments=1"),
            plain + "seg_q[2,3]bs seg_kv[2,10]bs slopes[4]h sink[4]h");
  EXPECT_EQ(roles(sizes + "alibi=last slopes=batch_head"), plain + "slopes[2,4]bh");
  EXPECT_EQ(roles(sizes + "descale=tensor"), plain + "q_scale[1]x k_scale[1]x v_scale[1]x");
  EXPECT_EQ(roles(sizes + "descale=head"), plain + "q_scale[2,2]bh k_scale[2,2]bh v_scale[2,2]bh");
  EXPECT_EQ(roles(sizes + "descale=block scale_block=4"),
            plain + "q_scale[2,4,1]bhx k_scale[2,2,3]bhx v_scale[2,2,3]bhx");
  EXPECT_EQ(roles(sizes + "mask=block block=2,4"), plain + "mask[2,4,2,3]bhqk");
  EXPECT_EQ(roles(sizes + "mask=list list=5"), plain + "mask[2,4,3,5]bhqx");
  EXPECT_EQ(roles("b=2 skv=9 kv=vllm batch=packed q_lens=1,0"),
            "q[1,1,64]thc k[2,16,1,64]pohc v[2,16,1,64]pohc cu_seqlens_q[3]x block_table[2,2]xx seqlens_kv[2]x");
}

TEST(Conventions, WhatHasNoMeaningIsRefusedByName) {
  struct Row {
    const char* params;
    const char* names;
    const char* says;
  };
  const Row rows[] = {
      {"softcap=-1", "softcap=-1", "0 (none) or above"},
      {"softcap=inf", "softcap=inf", "finite fp32"},
      {"softcap=1e39", "softcap=1e39", "finite fp32"},
      {"softcap=x", "softcap=x", "finite fp32"},
      {"dtype=fp64", "dtype=fp64", "fp32, fp16, bf16, e4m3 or e5m2"},
      {"out=e4m3", "out=e4m3", "fp32, fp16 or bf16"},
      {"alibi=up", "alibi=up", "none|distance|key|diagonal|last"},
      {"slopes=batch_head", "slopes=batch_head", "needs alibi"},
      {"alibi=key slopes=token", "slopes=token", "head|batch_head"},
      {"sink=yes", "sink=yes", "none|in_lse|out_of_lse"},
      {"segments=2", "segments=2", "[0, 1]"},
      {"descale=row", "descale=row", "none|tensor|head|block"},
      {"scale_block=4", "scale_block=4", "needs descale=block"},
      {"descale=block scale_block=0", "scale_block=0", "must lie in [1,"},
      {"mask=bool+block", "mask=bool+block", "must be none, causal"},
      {"block=4,4", "block=4,4", "needs mask=block"},
      {"mask=block block=4", "block=4", "queries,keys"},
      {"mask=block block=0,4", "block=0", "must lie in [1,"},
      {"list=4", "list=4", "needs mask=list"},
      {"mask=list list=0", "list=0", "must lie in [1,"},
      {"page=8", "page=8", "needs a paged kv"},
      {"page_seed=8", "page_seed=8", "needs a paged kv"},
      {"spare_pages=8", "spare_pages=8", "needs a paged kv"},
      {"table_pad=zero", "table_pad=zero", "needs a paged kv"},
      {"kv=vllm page=0", "page=0", "[1, 1024]"},
      {"kv=vllm page=1025", "page=1025", "[1, 1024]"},
      {"kv=vllm table_pad=one", "table_pad=one", "zero|minus_one|huge|shared"},
      {"kv=paged", "kv=paged", "contiguous|vllm|vllm_x|nhd|hnd"},
      {"kv=vllm_x d=20", "d=20", "multiple of 8"},
      {"kv=vllm_x d=8 dtype=e4m3", "d=8", "multiple of 16"},
      {"kv_lens=1", "kv_lens=1", "a paged kv"},
      {"kv=vllm q_lens=1", "q_lens=1", "batch=packed or batch=padded"},
      {"skv=4 prefix=5", "prefix=5", "longer than a sequence of 4 keys"},
      {"b=2 skv=4 prefix=3 batch=padded kv_lens=4,2", "prefix=3", "longer than a sequence of 2 keys"},
      {"skv=40 prefix=10 kv=nhd", "prefix=10", "multiple of page=16"},
      {"layout=bhds kv=hnd", "layout=bhds", "needs kv=contiguous"},
      {"layout=bhds batch=packed", "layout=bhds", "packed batches have one layout"},
      {"expand=batch kv=hnd", "expand=batch", "needs batch=dense"},
      {"expand=heads batch=padded", "expand=heads", "needs batch=dense"},
      {"expand=all", "expand=all", "none|batch|heads"},
      {"v_from=k d=64 dv=65", "dv=65", "at most d=64"},
      {"v_from=q", "v_from=q", "own|k"},
      {"offset=-1", "offset=-1", "must lie in [0,"},
      {"kv=vllm b=65536 skv=2000 page=1 d=1", "page=1", "2^26 pages"},
      {"kv=vllm b=60000 skv=1 page=1024 d=128", "page=1024", "2^32 elements"},
      {"seg_q=segments(4)", "seg_q=segments(4)", "unknown key"},
      {"segments=1 seg_q=ties@1", "seg_q=ties@1", "positions and channels"},
      {"alibi=key slopes=head slopes.data=segments(3)", "segments(3)", "one integer per position"},
      {"mask=list mask.data=keep(0.5)@1", "keep", "bool masks only"},
      {"mask=block mask.data=indices(5)@1", "indices(5)@1", "bool mask needs"},
      {"q=slopes", "q=slopes", "one number per head"},
      {"kv=vllm block_table=ones", "block_table=ones", "unknown key"},
      {"kv=vllm set=block_table[0,0]:3", "set=block_table[0,0]:3", "'block_table'"},
      {"kv=vllm_x skv=17 set=k[1,0,0,16,0]:1", "set=k[1,0,0,16,0]:1", "index 16 of axis 3"},
  };
  for (const Row& row : rows) {
    const std::string error = error_of(row.params);
    EXPECT_NE(error.find(row.names), std::string::npos) << row.params << "\n" << error;
    EXPECT_NE(error.find(row.says), std::string::npos) << row.params << "\n" << error;
  }
}

TEST(Conventions, ParseAndPrintAreInverseAndEveryParsedCaseHasBits) {
  std::mt19937_64 random(4);
  const auto pick = [&](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random() % choices.size()]);
  };
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line =
        "attention b=2 hq=4 hkv=2 sq=3 skv=24 d=16 " + pick({"", "dtype=e4m3 ", "dtype=e5m2 out=fp32 ", "dtype=fp32 "});
    line += pick(
        {"", "", "mask=causal ", "mask=block block=2,5 ", "mask=list list=7 ", "mask=causal+block ", "mask=bool "});
    line += pick({"", "softcap=30 ", "softcap=0.1 "}) +
            pick({"", "alibi=distance ", "alibi=key slopes=batch_head ", "alibi=last "});
    line += pick({"", "sink=in_lse ", "sink=out_of_lse ", "segments=1 "}) +
            pick({"", "descale=tensor ", "descale=head ", "descale=block scale_block=5 "});
    line +=
        pick({"", "batch=packed q_lens=3,0 ", "batch=padded kv_lens=24,8 ", "batch=padded kv_lens=9,24 q_lens=1,2 "});
    line += pick({"", "", "kv=vllm ", "kv=vllm_x page=8 ", "kv=nhd page=1 page_seed=5 ",
                  "kv=hnd page=1024 spare_pages=2 ", "kv=vllm page=2 table_pad=shared "});
    line += pick({"", "", "prefix=8 ", "prefix=3 "}) +
            pick({"", "", "v_from=k dv=9 ", "offset=3 ", "pad_dim=3 pad_rows=1 "});
    line += pick({"", "", "layout=bshd ", "layout=bhds ", "expand=batch ", "expand=heads "});
    Case c;
    try {
      c = parse_case(line);
    } catch (const InputError&) {
      continue;  // combinations that the options exclude
    }
    ++parsed;
    const std::string printed = print_case(c);
    ASSERT_EQ(parse_case(printed), c) << line;
    ASSERT_EQ(print_case(parse_case(printed)), printed) << line;
    const Problem problem = materialize(c);
    for (const Tensor& tensor : problem.inputs) {
      std::int64_t last = tensor.layout.offset;
      for (std::size_t axis = 0; axis < tensor.layout.shape.size(); ++axis)
        last += std::max<std::int64_t>(0, tensor.layout.shape[axis] - 1) * tensor.layout.strides[axis];
      ASSERT_TRUE(tensor.layout.count() == 0 || last < tensor.layout.storage) << line << tensor.layout.role;
    }
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace assay
