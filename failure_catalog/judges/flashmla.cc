// FlashMLA: infinities and NaN in the same places; each element close absolutely or relatively; and a cosine-like
// distance of the whole.
//
// deepseek-ai/FlashMLA, tests/kernelkit/compare.py (check_is_allclose) with the limits of
// tests/test_flash_mla_dense_decoding.py: o |y - r| < 8e-4 or |y - r| / (|r| + 1e-6) < 2.01 / 128, and 1 - 2 sum(y r) /
// (sum r^2 + sum y^2) at most 5e-6 (0 where sum r^2 < 1e-12); lse 1e-6, 8.01 / 65536 and 1e-7. Inputs: q and k of
// standard deviation 0.1, one key head of 576 channels whose first 512 are the values; kernels that take no such head
// get 128 channels. By hand, o of 1 and 1: (1.015625, 1) has relative error 0.015625 < 0.0157 but distance 6.1e-5:
// fails; (1.00390625, 1.00390625) has distance 7.6e-6: fails; (1.00390625, 1) has 3.8e-6: passes.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

struct Limits {
  double absolute, relative, cosine;
};
constexpr Limits kOutput{8e-4, 2.01 / 128, 5e-6}, kLse{1e-6, 8.01 / 65536, 1e-7};

bool same_anomaly(const Compared& pair) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return std::isnan(pair.y) == std::isnan(pair.r) && (pair.y == kInfinity) == (pair.r == kInfinity) &&
         (pair.y == -kInfinity) == (pair.r == -kInfinity);
}

Opinion judge_output(std::vector<Compared> pairs, const Limits& limits, std::string_view role) {
  std::int64_t misplaced = 0, outside = 0;
  double yr = 0, rr = 0, yy = 0;
  for (Compared& pair : pairs) {
    misplaced += !same_anomaly(pair);
    if (!std::isfinite(pair.y)) pair.y = 0;
    if (!std::isfinite(pair.r)) pair.r = 0;
    const double absolute = std::abs(pair.y - pair.r), relative = absolute / (std::abs(pair.r) + 1e-6);
    outside += !(absolute < limits.absolute || relative < limits.relative);
    yr += pair.y * pair.r;
    rr += pair.r * pair.r;
    yy += pair.y * pair.y;
  }
  const double distance = rr < 1e-12 ? 0 : 1 - 2 * yr / (rr + yy);
  return {misplaced == 0 && outside == 0 && !(std::abs(distance) > limits.cosine),
          fmt::format("{}: {} infinities or NaN misplaced, {} of {} elements outside, distance {:.3g} (limit {:g})",
                      role, misplaced, outside, pairs.size(), distance, limits.cosine)};
}

std::optional<Opinion> judge(const JudgedRun& run) {
  Opinion all;
  for (std::size_t k = 0; k < run.outputs.size(); ++k) {
    const OutputTruth& truth = run.truth.outputs[k];
    const Opinion one = judge_output(compared(truth, run.outputs[k], truth.layout.format),
                                     is_lse(truth) ? kLse : kOutput, truth.layout.role);
    all.passes = all.passes && one.passes;
    all.reason += (all.reason.empty() ? "" : "; ") + one.reason;
  }
  return all;
}

const RegisterJudge kRegister(
    {.name = "flashmla",
     .source = "deepseek-ai/FlashMLA tests/kernelkit/compare.py, tests/test_flash_mla_dense_decoding.py",
     .rule = "infinities and NaN in the same places, |y - r| < 8e-4 or relative < 2.01/128, cosine-like distance at "
             "most 5e-6; lse 1e-6, "
             "8.01/65536, 1e-7",
     .inputs = {"attention b=2 hq=4 hkv=1 sq=1 skv=1024 d=576 dv=512 v_from=k dtype={dtype} q=normal(0.1)@{s} "
                "k=normal(0.1)@{s}",
                "attention b=2 hq=4 hkv=1 sq=2 skv=1024 d=128 dtype={dtype} q=normal(0.1)@{s} k=normal(0.1)@{s} "
                "v=normal(0.1)@{s}",
                "attention b=2 hq=4 hkv=1 sq=1 skv=1024 d=128 kv=vllm page=64 dtype={dtype} q=normal(0.1)@{s} "
                "k=normal(0.1)@{s} "
                "v=normal(0.1)@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
