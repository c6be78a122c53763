// KernelBench: torch.allclose(reference, output) at 1e-4 for fp32 and 1e-2 for 16-bit formats; relative to the output's
// own value.
//
// ScalingIntelligence/KernelBench, src/kernelbench/eval.py (get_tolerance_for_precision, run_and_check_correctness):
// the kernel's output is allclose's second argument, so |r - y| <= t + t |y|. Level 1, problem 97 is attention on
// inputs uniform in [0, 1), 512 keys; its heads of 1,024 channels are cut to 256 here, the largest that our kernels
// take. By hand, bf16: y = 2.03125, r = 2: 0.03125 <= 0.0303125 fails; with y = 2.015625 it passes.
#include <fmt/format.h>

#include <cmath>

#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

std::optional<Opinion> judge(const JudgedRun& run) {
  const OutputTruth& truth = run.truth.outputs.front();
  const Format format = truth.layout.format;
  const double t = format == Format::kFp32 ? 1e-4 : 1e-2;
  std::int64_t outside = 0;
  double largest = 0;
  const std::vector<Compared> pairs = compared(truth, run.outputs.front(), format);
  for (const Compared& pair : pairs) {
    const double d = difference(pair);
    const bool close = d == 0 || (std::isfinite(pair.y) && std::isfinite(pair.r) && d <= t + t * std::abs(pair.y));
    outside += !close;
    if (!(d <= largest)) largest = d;
  }
  return Opinion{outside == 0, fmt::format("{} of {} elements outside {:g} + {:g} |y|, largest difference {:.4g}",
                                           outside, pairs.size(), t, t, largest)};
}

const RegisterJudge kRegister(
    {.name = "kernelbench",
     .source = "ScalingIntelligence/KernelBench src/kernelbench/eval.py",
     .rule = "|y - r| <= t + t |y| for every element of o, t = 1e-4 (fp32) or 1e-2 (16-bit outputs)",
     .inputs =
         {"attention hq=2 sq=512 rows=64 d=256 dtype={dtype} q=uniform(0,1)@{s} k=uniform(0,1)@{s} v=uniform(0,1)@{s}",
          "attention b=2 hq=2 sq=512 rows=64 d=128 dtype={dtype} q=uniform(0,1)@{s} k=uniform(0,1)@{s} "
          "v=uniform(0,1)@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
