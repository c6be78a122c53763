// The attention kernels on the device: what they refuse and declare, and their outputs against the plain loop and the
// bits of their host twins. Without a device, what cannot run is skipped.
#include <gtest/gtest.h>

#include <iostream>

#include "kernels/device_info.h"
#include "tests/kernels/attention_kernels.h"

namespace assay {
namespace {

/// A device kernel and the host kernel that computes the same step for step.
struct Twins {
  std::string device, host;
};
const std::vector<Twins> kTwins{{"fa2_cuda_bf16", "fa2_bf16"},     {"fa2_cuda_fp16", "fa2_fp16"},
                                {"fa4_cuda_bf16", "fa4_bf16"},     {"fa4_cuda_fp16", "fa4_fp16"},
                                {"naive_cuda_bf16", "naive_bf16"}, {"naive_cuda_fp16", "naive_fp16"},
                                {"naive_cuda_fp32", "naive_fp32"}};

std::string refusal(const std::string& kernel, const std::string& text) {
  return find_kernel(kernel)->unsupported(parse(text + dtype_of(kernel))).value_or("");
}

TEST(DeviceAttention, RefusesBeforeTheLaunchWhatItDoesNotTake) {
  const std::vector<std::pair<std::string, std::string>> refused{{"d=257", "head size 256"},
                                                                 {"d=64 dv=300", "head size 256"},
                                                                 {"kv=vllm", "contiguous"},
                                                                 {"skv=4 prefix=2", "prefix"},
                                                                 {"mask=bool", "causal and window"},
                                                                 {"segments=1", "causal and window"},
                                                                 {"descale=head", "descale"},
                                                                 {"layout=bhds", "neighbouring channels"},
                                                                 {"mask=causal masked_nonfinite=ignored", "masked V"},
                                                                 {"b=65536 hq=65536 sq=1 d=1", "2^31"}};
  for (const auto& [text, reason] : refused)
    EXPECT_NE(refusal("fa2_cuda_bf16", text).find(reason), std::string::npos)
        << text << ": " << refusal("fa2_cuda_bf16", text);
  EXPECT_NE(refusal("fa4_cuda_fp16", "d=192").find("head size 128"), std::string::npos);
  EXPECT_EQ(refusal("naive_cuda_fp32", "d=300 mask=causal masked_nonfinite=ignored"), "");
  EXPECT_NE(find_kernel("fa2_cuda_fp16")->unsupported(parse("d=64 dtype=bf16")), std::nullopt);
}

TEST(DeviceAttention, DeclaresTheTilesOfItsHeadSizeAndElseWhatTheHostTwinDeclares) {
  for (const auto& [device, host] : kTwins)
    for (const std::string text : {"d=64", "d=80", "d=40 dv=100", "softcap=5 d=128", "alibi=key mask=causal d=33"}) {
      const Params params = parse(text + dtype_of(device));
      Arithmetic twin = find_kernel(host)->declared(params);
      if (twin.exponential == Exponential::kEx2Approx && device_info().capability == "9.0")
        twin.exponential = Exponential::kEx2Hopper;  // as measured there
      if (!device.starts_with("naive"))
        twin.tile_n = text == "d=64" || text.find("d=33") != std::string::npos ? 128 : 64;
      EXPECT_EQ(find_kernel(device)->declared(params), twin) << device << ' ' << text;
    }
}

/// Calls that reach every path: whole and partial tiles, masks on either side, all features, all head sizes, vectors
/// that start anywhere, lengths from zero on, empty rows of every convention.
const std::vector<std::string> kCalls{
    "b=2 hq=4 hkv=2 sq=150 skv=333",
    "hq=2 hkv=1 sq=257 skv=257 d=128 mask=causal",
    "hq=2 hkv=1 sq=257 skv=300 d=256 mask=causal align=tl",
    "hq=2 sq=333 skv=150 mask=causal empty=nan empty_lse=inf",
    "hq=2 hkv=1 sq=333 skv=150 d=100 mask=causal empty=mean out=fp32",
    "hq=2 sq=200 skv=333 window=50,20 lse=2",
    "hq=2 sq=200 skv=333 d=96 window=50,0 window_ends=left_exclusive sink=in_lse",
    "hq=2 hkv=1 sq=70 skv=200 d=72 dv=40 layout=bshd sink=out_of_lse lse=2",
    "hq=2 sq=70 skv=200 d=33 dv=65 pad_dim=3 offset=1 pad_rows=2 softcap=0.5",
    "hq=2 sq=70 skv=200 alibi=distance scale=-0.2",
    "hq=2 hkv=1 sq=140 skv=200 d=128 alibi=key mask=causal slopes=batch_head b=2",
    "hq=2 sq=70 skv=90 d=80 alibi=diagonal softcap=2 sink=in_lse",
    "hq=2 sq=70 skv=90 alibi=last scale=0",
    "b=4 hq=2 hkv=1 sq=140 skv=200 batch=packed q_lens=140,0,3,77 kv_lens=200,11,0,78 mask=causal sink=in_lse",
    "b=4 hq=2 hkv=1 sq=140 skv=200 d=128 batch=padded q_lens=140,0,3,77 kv_lens=200,11,0,78 pad_rows=1 empty=mean",
    "b=2 hq=2 sq=65 skv=129 v_from=k dv=32 expand=heads",
    "sq=1 skv=1 d=1 out=fp16",
    "b=2 hq=3 sq=9 skv=700 d=16 lse=none rows=20"};

/// Share of equal codes in the rows that both wrote.
double equal_share(const RunOutcome& a, const RunOutcome& b, const Scenario& s) {
  std::int64_t equal = 0, all = 0;
  for (std::size_t n = 0; n < a.outputs.size(); ++n) {
    const TensorView x = a.outputs[n].view(), y = b.outputs[n].view();
    for (std::int64_t batch = 0; batch < s.p.batch; ++batch)
      for (std::int64_t h = 0; h < s.p.heads_q; ++h)
        for (std::int64_t i = 0; i < s.len(true, batch); ++i)
          for (std::int64_t c = 0; c < (n == 0 ? s.p.dim_v : 1); ++c) {
            const std::int64_t at = s.at(s.outputs[n], batch, h, i, n == 0 ? c : -1);
            const double value = x.value(at), twin = y.value(at);
            if (x.code(at) == canary_code(x.format()) || y.code(at) == canary_code(y.format())) continue;
            equal += x.code(at) == y.code(at) || (std::isnan(value) && std::isnan(twin)) ? 1 : 0;
            ++all;
          }
  }
  return all == 0 ? 1.0 : static_cast<double>(equal) / static_cast<double>(all);
}

TEST(DeviceAttention, AgreesWithThePlainLoopAndInMostBitsWithItsHostTwin) {
  for (const auto& [device, host] : kTwins) {
    double least = 1.0, sum = 0.0;
    std::string worst;
    int count = 0;
    for (const std::string& text : kCalls) {
      const std::string line = text + dtype_of(device);
      if (!refusal(device, text).empty()) continue;
      Scenario s(line);
      const RunOutcome outcome = run(device, s), twin = run(host, s);
      if (outcome.status == RunStatus::kSkipped) GTEST_SKIP() << outcome.reason;
      ASSERT_EQ(outcome.status, RunStatus::kOk) << device << ' ' << line << ": " << outcome.reason;
      EXPECT_TRUE(outcome.broken.empty()) << device << ' ' << line;
      if (s.p.sampled_rows == 0) {
        Tolerance tolerance = tolerance_of(host, s);
        if (s.p.output == Format::kFp16) tolerance.o = std::max(tolerance.o, 1e-3);
        EXPECT_EQ(differences(s, plain_attention(s), outcome.outputs, tolerance), "") << device << ' ' << line;
      }
      const double share = equal_share(outcome, twin, s);
      sum += share;
      ++count;
      if (share < least) {
        least = share;
        worst = line;
      }
    }
    std::cout << device << ": bits equal to " << host << ": mean " << sum / count << ", least " << least << " ("
              << worst << ")\n";
    // The twin of FlashAttention-4 has larger tiles beyond head size 64; fp32 outputs show every last bit in which
    // ex2.approx differs from the exponential of the host.
    EXPECT_GT(sum / count, device == "naive_cuda_fp32" ? 0.2 : 0.85) << device;
  }
}

}  // namespace
}  // namespace assay
