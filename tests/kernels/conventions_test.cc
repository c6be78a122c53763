// Every attention kernel against the plain fp64 loop under every convention it takes, and what it refuses.
#include <gtest/gtest.h>

#include <map>

#include "tests/kernels/attention_kernels.h"

namespace assay {
namespace {

class Convention : public testing::TestWithParam<std::string> {};

TEST_P(Convention, IsTheSameToEveryKernelThatTakesIt) {
  std::map<std::string, std::pair<Scenario, std::vector<PlainRow>>> by_dtype;
  int taken = 0;
  for (const std::string& kernel : kAttentionKernels) {
    const std::string dtype = dtype_of(kernel);
    auto found = by_dtype.find(dtype);
    if (found == by_dtype.end()) {
      Scenario s(GetParam() + dtype);
      std::vector<PlainRow> rows = plain_attention(s);
      found = by_dtype.emplace(dtype, std::pair(std::move(s), std::move(rows))).first;
    }
    const auto& [s, rows] = found->second;
    const RunOutcome outcome = run(kernel, s);
    if (outcome.status == RunStatus::kSkipped) continue;
    ++taken;
    ASSERT_EQ(outcome.status, RunStatus::kOk) << kernel << ": " << outcome.reason;
    EXPECT_EQ(outcome.broken, std::vector<std::string>{}) << kernel;
    EXPECT_EQ(differences(s, rows, outcome.outputs, tolerance_of(kernel, s)), "") << kernel;
  }
  // The naive ones take everything, at least two others all but factors by block.
  EXPECT_GE(taken, GetParam().find("descale=block") == std::string::npos ? 5 + 2 : 5);
}

INSTANTIATE_TEST_SUITE_P(
    Attention, Convention,
    testing::Values(
        // Shapes, heads, masks by position.
        "sq=3 skv=5 d=8", "b=2 hq=4 hkv=2 sq=20 skv=20 d=16 mask=causal",
        "hq=6 hkv=2 sq=2 skv=140 d=24 dv=40 mask=causal", "sq=140 skv=70 d=16 mask=causal empty=nan empty_lse=inf",
        "sq=40 skv=10 d=16 mask=causal empty=mean", "sq=20 skv=33 d=16 mask=causal align=tl lse=2",
        "sq=33 skv=20 d=16 mask=causal align=tl lse=none", "sq=140 skv=140 d=16 window=7,3",
        "sq=90 skv=80 d=16 window=7,-1 window_ends=left_exclusive mask=causal", "sq=30 skv=300 d=16 window=-1,0",
        "sq=9 skv=9 d=16 window=0,0 window_ends=left_exclusive", "sq=4 skv=600 d=80 scale=-0.25",
        "sq=4 skv=100 d=80 scale=0 lse=2", "sq=4 skv=100 d=16 scale=3", "sq=2 skv=70 d=128 dv=256 out=fp32",
        "sq=0 skv=5 d=8", "sq=3 skv=0 d=8 empty=mean empty_lse=inf", "hq=2 sq=1 skv=1 d=1",
        // Masks that carry data.
        "b=2 hq=2 hkv=1 sq=9 skv=150 d=16 mask=bool", "hq=2 sq=9 skv=150 d=16 mask=additive",
        "hq=2 sq=70 skv=70 d=16 mask=causal+additive scale=-0.5 lse=2",
        "hq=2 sq=20 skv=20 d=16 mask=causal+bool empty=mean", "b=2 hq=2 sq=66 skv=140 d=8 mask=block block=5,48",
        "hq=2 sq=70 skv=90 d=16 mask=causal+block block=64,7 empty=nan", "b=2 hq=2 sq=9 skv=300 d=16 mask=list list=40",
        "sq=60 skv=60 d=16 mask=causal+list list=9 empty_lse=inf", "b=2 hq=2 sq=40 skv=90 d=16 segments=1",
        "sq=90 skv=90 d=16 segments=1 mask=causal window=9,-1",
        // What changes logits.
        "hq=2 sq=9 skv=150 d=16 softcap=2", "sq=9 skv=150 d=16 softcap=30 scale=2 mask=causal lse=2",
        "hq=2 hkv=1 sq=9 skv=150 d=16 softcap=1.5 mask=additive alibi=key", "hq=4 sq=40 skv=70 d=16 alibi=distance",
        "hq=4 sq=40 skv=70 d=16 alibi=distance align=tl",
        "b=2 hq=4 sq=40 skv=70 d=16 alibi=key mask=causal slopes=batch_head",
        "hq=4 sq=40 skv=70 d=16 alibi=diagonal lse=2",
        "b=2 hq=2 sq=40 skv=70 d=16 alibi=last mask=causal batch=padded kv_lens=70,20",
        "hq=4 sq=9 skv=150 d=16 sink=in_lse", "hq=4 sq=9 skv=150 d=16 sink=out_of_lse lse=2",
        "hq=4 sq=30 skv=9 d=16 sink=in_lse mask=causal empty=nan empty_lse=inf lse=2",
        "hq=2 sq=30 skv=9 d=16 sink=out_of_lse mask=causal empty=mean",
        "hq=2 sq=3 skv=600 d=16 sink=in_lse softcap=3 alibi=last lse=2",
        // Factors.
        "b=2 hq=2 hkv=1 sq=5 skv=150 d=16 descale=tensor",
        "b=2 hq=4 hkv=2 sq=3 skv=150 d=16 descale=head lse=2 sink=in_lse",
        "b=2 hq=4 hkv=2 sq=40 skv=100 d=16 descale=block scale_block=32",
        "hq=2 sq=9 skv=5 d=16 descale=head mask=causal empty=mean",
        "hq=2 sq=20 skv=30 d=16 descale=block scale_block=7 empty=mean mask=causal softcap=4",
        // Batches and strides.
        "b=4 hq=2 sq=40 skv=300 d=16 batch=packed q_lens=1,40,0,7 kv_lens=300,3,9,0 mask=causal",
        "b=3 hq=2 hkv=1 sq=10 skv=300 d=16 batch=padded q_lens=10,3,1 kv_lens=0,300,17 mask=causal pad_rows=2",
        "b=2 hq=2 sq=10 skv=30 d=16 layout=bshd pad_rows=3 pad_dim=5 offset=9",
        "b=2 hq=2 sq=10 skv=30 d=16 layout=bhds pad_rows=1", "b=3 hq=4 hkv=2 sq=5 skv=70 d=16 expand=batch offset=1",
        "b=2 hq=4 hkv=4 sq=5 skv=70 d=16 expand=heads layout=bshd", "hq=2 hkv=1 sq=2 skv=70 d=576 dv=512 v_from=k",
        "sq=70 skv=70 d=192 dv=128 mask=causal",
        // Shared prefixes.
        "b=3 hq=2 sq=7 skv=150 d=16 prefix=100 mask=causal",
        "b=2 hq=2 sq=9 skv=70 d=16 prefix=70 sink=out_of_lse lse=2",
        "b=3 hq=2 hkv=1 sq=9 skv=90 d=16 prefix=30 batch=packed q_lens=9,0,4 kv_lens=31,90,30 mask=causal alibi=key",
        "b=2 sq=80 skv=170 d=16 prefix=65 batch=padded kv_lens=65,170 window=20,9 softcap=2",
        "b=2 hq=2 hkv=1 sq=2 skv=90 d=96 dv=64 prefix=64 v_from=k descale=tensor",
        // Pages.
        "b=3 hq=4 hkv=2 sq=2 skv=150 d=16 kv=vllm page=16 page_seed=5 kv_lens=150,0,33 table_pad=huge mask=causal",
        "b=3 hq=4 hkv=2 sq=2 skv=150 d=16 kv=vllm_x page=16 page_seed=5 kv_lens=150,7,33 table_pad=minus_one "
        "spare_pages=3",
        "b=3 hq=4 hkv=2 sq=2 skv=150 d=16 kv=nhd page=1 page_seed=5 kv_lens=150,0,33 table_pad=huge alibi=last",
        "b=3 hq=4 hkv=2 sq=9 skv=150 d=16 kv=hnd page=7 page_seed=5 kv_lens=150,0,33 batch=packed q_lens=9,1,2 "
        "mask=causal",
        "hq=2 hkv=1 sq=1 skv=150 d=576 dv=512 kv=vllm page=64 page_seed=2 v_from=k sink=in_lse",
        "hq=1 sq=1 skv=1100 d=192 dv=128 kv=hnd page=1024 softcap=5 lse=2",
        "b=3 hq=2 sq=5 skv=90 d=16 kv=vllm page=16 prefix=32 kv_lens=90,32,50 mask=causal+list list=30",
        "b=3 hq=2 sq=5 skv=90 d=16 kv=nhd page=8 prefix=64 kv_lens=90,64,70 page_seed=7 mask=additive",
        "b=2 hq=2 sq=70 skv=90 d=16 kv=hnd page=5 batch=padded q_lens=3,70 segments=1 empty=mean pad_dim=3 offset=2",
        "b=2 hq=2 sq=5 skv=40 d=16 kv=vllm_x page=4 mask=block block=2,9 v_from=k dv=16 offset=4 pad_dim=1"));

struct Refusal {
  const char* kernel;
  const char* text;
  const char* reason;
};

TEST(Refusals, NameTheConventionThatAKernelDoesNotTake) {
  for (const Refusal& r : std::initializer_list<Refusal>{
           {"fa2_bf16", "sq=2 dtype=fp16", "bf16 inputs only"},
           {"fa2_bf16", "sq=2 kv=hnd", "contiguous keys or kv=vllm pages only"},
           {"fa1_bf16", "sq=2 kv=vllm", "contiguous keys only"},
           {"fa4_bf16", "sq=2 kv=vllm", "contiguous keys only"},
           {"split_bf16", "sq=2 kv=vllm", "contiguous keys only"},
           {"fa2_bf16", "sq=2 descale=block", "descale=block"},
           {"fa3_e4m3", "sq=2 dtype=e4m3 descale=block", "descale=block"},
           {"paged_vllm_bf16", "sq=2", "kv=vllm and vllm_x only"},
           {"paged_vllm_bf16", "sq=2 kv=nhd", "kv=vllm and vllm_x only"},
           {"paged_flashinfer_bf16", "sq=2 kv=vllm", "kv=nhd and hnd only"},
           {"paged_split_bf16", "sq=2", "paged keys only"},
           {"cascade_bf16", "sq=2", "needs a shared prefix"},
           {"fa2_bf16", "sq=2 mask=causal masked_nonfinite=ignored", "multiplies masked keys by zero"},
           {"fa1_bf16", "sq=2 segments=1 masked_nonfinite=ignored", "multiplies masked keys by zero"},
           {"cascade_bf16", "sq=2 skv=9 prefix=4 mask=list masked_nonfinite=ignored", "multiplies masked keys by zero"},
       }) {
    const std::optional<std::string> reason = find_kernel(r.kernel)->unsupported(parse(r.text));
    ASSERT_TRUE(reason.has_value()) << r.kernel << ' ' << r.text;
    EXPECT_NE(reason->find(r.reason), std::string::npos) << r.kernel << ' ' << r.text << ": " << *reason;
  }
}

}  // namespace
}  // namespace assay
