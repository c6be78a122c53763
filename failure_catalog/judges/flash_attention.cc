// FlashAttention: the largest error may be at most twice that of the same computation in PyTorch and the same 16-bit
// format.
//
// Dao-AILab/flash-attention, tests/test_flash_attn.py: max |out - ref| <= 2 max |pt - ref|, where ref is computed in
// fp32 and cast to the format, pt in the format (pytorch_attention.h), and differences are tensors of that format. For
// 8-bit inputs hopper/test_flash_attn.py: pt in bf16 with P rounded to the 8-bit format, 2 (with a soft cap 3) times
// its error and 2 max |(ref + 0.3 - 0.3) - ref| allowed. One number for the whole tensor; lse is not looked at. By
// hand, bf16, d = 1, scale 1, q = 1, k = (1, 0.99609375), v = (1, 0): the true weight is 0.500977, ref = 0.5; the
// logits are bf16 numbers, pt = 0.5, no error is allowed: 0.5 passes and the next number, 0.50390625, fails.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "failure_catalog/judges/compared.h"
#include "failure_catalog/judges/pytorch_attention.h"
#include "oracle/error.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

/// As torch's max: NaN wins.
void raise(double& largest, double x) {
  if (std::isnan(x) || x > largest) largest = x;
}

std::optional<Opinion> judge(const JudgedRun& run) {
  if (run.c.op != "attention") return std::nullopt;
  const AttentionParams p = attention_params(run.problem.params);
  const bool eight_bits = info(p.input).storage_bits == 8;
  if (info(p.input).storage_bits > 16) return std::nullopt;  // FlashAttention takes no such inputs
  const Format dtype = eight_bits ? Format::kBf16 : p.input;
  const OutputTruth& truth = run.truth.outputs.front();
  JudgeMemo own;
  std::vector<double>& eager = (run.memo != nullptr ? *run.memo : own).eager_attention;
  if (eager.empty()) eager = pytorch_attention(run.problem, dtype, eight_bits ? p.input : dtype);
  if (eager.size() != truth.element.size())
    throw InputError("flash-attention-2x: the comparator has other elements than the truth");
  const auto in_format = [&](double x) { return round_to(dtype, x); };
  double error = 0, of_eager = 0, of_trick = 0;
  const Format format = truth.layout.format;
  for (std::size_t i = 0; i < truth.element.size(); ++i) {
    const std::optional<double> r = reference_value(truth, i, dtype);
    if (!r) continue;
    const double y = decode(format, load_code(run.outputs.front().bytes.data(), format, truth.element[i]));
    raise(error, std::abs(in_format(y - *r)));
    raise(of_eager, std::abs(in_format(eager[i] - *r)));
    raise(of_trick, std::abs(in_format(in_format(in_format(*r + 0.3) - 0.3) - *r)));
  }
  const double limit = eight_bits ? (p.softcap > 0 ? 3 : 2) * of_eager + 2 * of_trick : 2 * of_eager;
  return Opinion{error <= limit, fmt::format("largest error of o {:.4g}, of eager {} {:.4g}, allowed {:.4g}", error,
                                             info(dtype).name, of_eager, limit)};
}

const RegisterJudge kRegister(
    {.name = "flash-attention-2x",
     .source = "Dao-AILab/flash-attention tests/test_flash_attn.py, hopper/test_flash_attn.py",
     .rule = "the largest error of o is at most twice that of eager PyTorch in the same format",
     .inputs = {"attention b=2 hq=2 hkv=1 sq=113 skv=203 d=64 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention b=2 hq=2 hkv=1 sq=128 skv=217 d=128 mask=causal dtype={dtype} q=normal@{s} k=normal@{s} "
                "v=normal@{s}",
                "attention hq=2 sq=256 skv=512 d=64 mask=causal dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention hq=2 sq=512 skv=256 rows=256 d=64 mask=causal dtype={dtype} q=normal@{s} k=normal@{s} "
                "v=normal@{s}",
                "attention hq=2 sq=1024 rows=128 d=128 dtype={dtype} q=normal@{s} k=normal@{s} v=normal@{s}",
                "attention b=2 hq=2 sq=1 skv=1024 d=128 dtype={dtype} kv=vllm page=256 q=normal@{s} k=normal@{s} "
                "v=normal@{s}"},
     .judge = judge});

}  // namespace
}  // namespace assay
