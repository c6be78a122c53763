// gpuemu: an absolute tolerance per operator and format against fp64, and no NaN or infinity in the output, whatever
// the truth.
//
// Skelf-Research/gpuemu, crates/gpuemu-daemon/src/validator.rs (compare_values, check_nan, check_inf) and
// crates/gpuemu-common/src/config.rs; a NaN difference exceeds no tolerance and is found by the second check alone. Its
// corpus sets 1e-3 (fp32) and 5e-2 (fp16) for flash attention, one head without a mask, up to 256 keys; bf16 is judged
// like fp16. Other operators have the defaults 1e-5 and 1e-3. By hand, fp16: 0.0499 for 0 passes, 0.0501 fails, NaN for
// NaN fails.
#include <fmt/format.h>

#include <cmath>

#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

std::optional<Opinion> judge(const JudgedRun& run) {
  const OutputTruth& truth = run.truth.outputs.front();
  const bool attention = run.c.op == "attention", fp32 = truth.layout.format == Format::kFp32;
  const double tolerance = attention ? (fp32 ? 1e-3 : 5e-2) : (fp32 ? 1e-5 : 1e-3);
  double largest = 0;
  std::int64_t non_finite = 0;
  for (const Compared& pair : compared(truth, run.outputs.front(), Format::kFp64)) {
    non_finite += !std::isfinite(pair.y);
    if (const double d = std::abs(pair.y - pair.r); d > largest) largest = d;
  }
  return Opinion{largest <= tolerance && non_finite == 0,
                 fmt::format("largest difference {:.4g} (tolerance {:g}), {} elements are not finite", largest,
                             tolerance, non_finite)};
}

const RegisterJudge kRegister(
    {.name = "gpuemu",
     .source = "Skelf-Research/gpuemu crates/gpuemu-daemon/src/validator.rs; sarkar-dipankar/gpuemu-corpus",
     .rule = "|y - r| <= 5e-2 (fp32: 1e-3) for every element of o, r in fp64, and no NaN or infinity",
     .inputs = {"attention sq=64 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention sq=128 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention sq=256 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention sq=65 d=32 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
