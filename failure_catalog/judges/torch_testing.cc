// torch.testing.assert_close with its default tolerances, which follow the format of the tensors.
//
// PyTorch, torch/testing/_comparison.py: (rtol, atol) is (1e-3, 1e-5) for fp16, (1.6e-2, 1e-5) for bf16, (1.3e-6, 1e-5)
// for fp32, (1e-7, 1e-7) for fp64, and (0, 0) for formats without an entry; both tensors must have one format, so the
// reference is cast to the output's. By hand, bf16: 1.015625 for 1 is off by 0.015625 of 0.01601 and passes; 1.0234375
// fails.
#include "failure_catalog/judges/allclose.h"
#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

struct Tolerance {
  double rtol = 0, atol = 0;
};

Tolerance default_tolerance(Format format) {
  switch (format) {
    case Format::kFp16: return {1e-3, 1e-5};
    case Format::kBf16: return {1.6e-2, 1e-5};
    case Format::kFp32: return {1.3e-6, 1e-5};
    case Format::kFp64: return {1e-7, 1e-7};
    default: return {};
  }
}

std::optional<Opinion> judge(const JudgedRun& run) {
  Opinion all;
  for (std::size_t k = 0; k < run.outputs.size(); ++k) {
    const OutputTruth& truth = run.truth.outputs[k];
    const Tolerance t = default_tolerance(truth.layout.format);
    const Opinion one =
        opinion_of(allclose(truth, run.outputs[k], t.atol, t.rtol, truth.layout.format), truth.layout.role);
    all.passes = all.passes && one.passes;
    all.reason += (all.reason.empty() ? "" : "; ") + one.reason;
  }
  return all;
}

const RegisterJudge kRegister(
    {.name = "torch-testing",
     .source = "pytorch/pytorch torch/testing/_comparison.py",
     .rule = "|y - r| <= atol + rtol |r| for every element of o and lse, tolerances by format (bf16: 1e-5, 1.6e-2)",
     .inputs =
         {"attention b=2 hq=2 sq=64 skv=64 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
          "attention b=2 hq=2 sq=128 skv=256 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
          "attention hq=2 sq=256 d=128 mask=causal align=tl dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
