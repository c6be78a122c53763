// Functions coarser than declared (numerics.md 2.13, "exp2 error 1e-3 (alternating)", "exp2 degree-3 polynomial").
#include "kernels/mutant.h"

namespace assay {
namespace {

const RegisterKernel kFa2Bf16ExponentialAlternates{mutant_of<"fa2_bf16", Fault::kExponentialAlternates, 1000>(
    "fa2_bf16_exponential_alternates",
    "fa2_bf16 whose exp2 is too large by 1e-3 at even columns, too small at odd ones", "function_error")};
const RegisterKernel kFa2Bf16CubicExponentials{mutant_of<"fa2_bf16", Fault::kCubicExponentials>(
    "fa2_bf16_cubic_exponentials", "fa2_bf16 that takes every exp2 from a cubic", "function_error")};
const RegisterKernel kSplitBf16UnanchoredCubic{mutant_of<"split_bf16", Fault::kUnanchoredCubic>(
    "split_bf16_unanchored_cubic", "split_bf16 that takes every exp2 from a cubic with 2^0 = 1.000085",
    "function_error", "MagiAttention #342")};
const RegisterKernel kPagedVllmBf16QuadraticExponentials{mutant_of<"paged_vllm_bf16", Fault::kQuadraticExponentials>(
    "paged_vllm_bf16_quadratic_exponentials", "paged_vllm_bf16 that takes every exp2 from a quadratic",
    "function_error")};
const RegisterKernel kSoftmaxOnlineBf16TableExponentials{mutant_of<"softmax_online_bf16", Fault::kTableExponentials>(
    "softmax_online_bf16_table_exponentials", "softmax_online_bf16 that takes exp2 from a table of 256 fractions",
    "function_error")};
const RegisterKernel kFa2Bf16TanhRational{mutant_of<"fa2_bf16", Fault::kTanhRational>(
    "fa2_bf16_tanh_rational", "fa2_bf16 whose soft cap takes tanh from a fraction of polynomials", "function_error")};
const RegisterKernel kFa1Bf16LogQuadratic{mutant_of<"fa1_bf16", Fault::kLogQuadratic>(
    "fa1_bf16_log_quadratic", "fa1_bf16 whose LSE takes the logarithm from a quadratic", "function_error")};
const RegisterKernel kNaiveFp16ReciprocalOneStep{mutant_of<"naive_fp16", Fault::kReciprocalOneStep>(
    "naive_fp16_reciprocal_one_step", "naive_fp16 that multiplies O by 1 / l from a line and one Newton step",
    "function_error")};
const RegisterKernel kMergeTwoPassFp32CubicExponentials{mutant_of<"merge_two_pass_fp32", Fault::kMergeCubic>(
    "merge_two_pass_fp32_cubic_exponentials", "merge_two_pass_fp32 that takes its exponentials from a cubic",
    "function_error")};

}  // namespace
}  // namespace assay
