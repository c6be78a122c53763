// |y - r| <= atol + rtol |r|, element by element, and the two judges that use it with one tolerance for all formats.
//
// 1e-3 is FlashInfer's tolerance for fp16 decoding (tests/attention/test_batch_decode_kernels.py; N(0,1) inputs, 54 to
// 2,048 keys). 1e-2 is the absolute one of Triton's tutorial (causal, 1,024 keys, inputs of standard deviation 0.5,
// scale 0.5; rtol = 0 there) and, with an equal relative one, that of many bf16 tests. By hand: 0.505 for 0.5 is inside
// 1e-2 (0.015) and outside 1e-3 (0.0015).
#include "failure_catalog/judges/allclose.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "failure_catalog/judges/compared.h"

namespace assay {
namespace {

/// |y - r| / (atol + rtol |r|), 0 for equal values (infinities too), +inf where the quotient has no value.
double part_of_tolerance(double y, double r, double atol, double rtol) {
  if (y == r) return 0;
  const double part = std::abs(y - r) / (atol + rtol * std::abs(r));
  return std::isfinite(r) && std::isfinite(y) ? part : std::numeric_limits<double>::infinity();
}

}  // namespace

Allclose allclose(const OutputTruth& truth, const Tensor& output, double atol, double rtol, Format reference) {
  Allclose result;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    const std::optional<double> r = reference_value(truth, i, reference);
    if (!r) {
      ++result.left_out;
      continue;
    }
    const double y = decode(truth.layout.format, load_code(output.bytes.data(), truth.layout.format, truth.element[i]));
    const double part = part_of_tolerance(y, *r, atol, rtol);
    ++result.compared;
    result.outside += !(part <= 1);
    if (result.worst >= 0 && part <= result.worst_part) continue;
    result.worst = static_cast<std::int64_t>(i);
    result.worst_value = y;
    result.worst_reference = *r;
    result.worst_part = part;
  }
  return result;
}

Opinion opinion_of(const Allclose& rule, std::string_view role) {
  if (rule.compared == 0) return {true, fmt::format("{}: nothing to compare", role)};
  return {rule.passes(),
          fmt::format("{}: {} of {} elements outside, worst {} where the reference is {} ({:.4g} of its tolerance)",
                      role, rule.outside, rule.compared, rule.worst_value, rule.worst_reference, rule.worst_part)};
}

namespace {

template <int kThousandths>
std::optional<Opinion> judge(const JudgedRun& run) {
  constexpr double kTolerance = kThousandths * 1e-3;
  Opinion all;
  for (std::size_t k = 0; k < run.outputs.size(); ++k) {
    const OutputTruth& truth = run.truth.outputs[k];
    const Opinion one = opinion_of(allclose(truth, run.outputs[k], kTolerance, kTolerance), truth.layout.role);
    all.passes = all.passes && one.passes;
    all.reason += (all.reason.empty() ? "" : "; ") + one.reason;
  }
  return all;
}

const RegisterJudge kHundredth(
    {.name = "allclose-1e-2",
     .source = "triton-lang/triton python/tutorials/06-fused-attention.py; bf16 tests of FlashInfer",
     .rule = "|y - r| <= 1e-2 + 1e-2 |r| for every element of o and lse, r in fp32",
     .inputs = {"attention hq=2 sq=1024 rows=64 d=64 mask=causal scale=0.5 dtype={dtype} q=normal(0.5)@{s} "
                "k=normal(0.5)@{s} v=normal(0.5)@{s}",
                "attention b=2 hq=2 sq=64 skv=512 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}"},
     .judge = judge<10>});
const RegisterJudge kThousandth(
    {.name = "allclose-1e-3",
     .source = "flashinfer-ai/flashinfer tests/attention/test_batch_decode_kernels.py",
     .rule = "|y - r| <= 1e-3 + 1e-3 |r| for every element of o and lse, r in fp32",
     .inputs = {"attention b=4 hq=4 hkv=2 sq=1 skv=54 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention b=4 hq=4 hkv=2 sq=1 skv=97 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention b=4 hq=4 hkv=2 sq=1 skv=2048 d=128 dtype={dtype} kv=nhd page=16 q=normal@{s} "
                "k=normal@{s} v=normal@{s}",
                "attention b=4 hq=4 hkv=2 sq=1 skv=2048 d=128 dtype={dtype} q=normal@{s} k=normal@{s} "
                "v=normal@{s}"},
     .judge = judge<1>});

}  // namespace
}  // namespace assay
