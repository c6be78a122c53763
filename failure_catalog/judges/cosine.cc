// Cosine similarity of the whole output with the reference above 0.99.
//
// FlashInfer's GEMM and 4-bit attention tests (flashinfer-ai/flashinfer, tests/gemm, tests/attention) and FA4's fp8
// decoding test ask torch.nn.functional.cosine_similarity for more than 0.99: y.r / max(|y| |r|, 1e-8). By hand: (2, 2,
// 2) for (1, 1, 1) has 1 and passes; (1, 0) for (1, 1) has 0.7071 and fails.
#include <fmt/format.h>

#include <cmath>

#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

std::optional<Opinion> judge(const JudgedRun& run) {
  const OutputTruth& truth = run.truth.outputs.front();
  double yr = 0, yy = 0, rr = 0;
  for (const Compared& pair : compared(truth, run.outputs.front(), truth.layout.format)) {
    yr += pair.y * pair.r;
    yy += pair.y * pair.y;
    rr += pair.r * pair.r;
  }
  const double norms = std::sqrt(yy) * std::sqrt(rr), cosine = yr / (norms < 1e-8 ? 1e-8 : norms);
  return Opinion{cosine > 0.99, fmt::format("cosine similarity of o is {:.6f}", cosine)};
}

const RegisterJudge kRegister(
    {.name = "cosine-0.99",
     .source = "flashinfer-ai/flashinfer tests/gemm, tests/attention; Dao-AILab/flash-attention tests/cute",
     .rule = "the cosine of the angle between o and its reference is above 0.99",
     .inputs = {"attention b=2 hq=4 hkv=2 sq=1 skv=512 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention b=2 hq=4 hkv=2 sq=64 skv=512 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
