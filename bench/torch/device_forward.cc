// Our device attention kernels as one C function on device pointers, for timing beside PyTorch in its process
// (bench/kernels_vs_torch.py).
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "kernels/attention/cuda/launches.h"

namespace {

using namespace assay::cuda;

template <class Element>
bool launch(std::string_view idea, const ForwardParams& p, CUstream_st* stream) {
  if (idea == "fa2" && p.dim_qk <= 64) return launch_fa2<Element, 64>(p, stream), true;
  if (idea == "fa2" && p.dim_qk <= 128) return launch_fa2<Element, 128>(p, stream), true;
  if (idea == "fa2" && p.dim_qk <= 256) return launch_fa2<Element, 256>(p, stream), true;
  if (idea == "fa4" && p.dim_qk <= 64) return launch_fa4<Element, 64>(p, stream), true;
  if (idea == "fa4" && p.dim_qk <= 128) return launch_fa4<Element, 128>(p, stream), true;
  return false;
}

}  // namespace

/// q, k, v and o: [batch, heads, tokens, dim] in C order, 16-byte aligned device memory of the kernel's format; lse:
/// [batch, heads, tokens]. Scale 1 / sqrt(dim). Null, or what went wrong (a static text).
extern "C" [[gnu::visibility("default")]] const char* assay_device_forward(const char* kernel, const void* q, const void* k,
                                                                           const void* v, void* o, float* lse,
                                                                           std::int64_t batch, std::int64_t heads,
                                                                           std::int64_t tokens, std::int64_t dim, int causal,
                                                                           void* stream) {
  const std::string_view name = kernel;
  ForwardParams p;
  p.q = q, p.k = k, p.v = v, p.o = o, p.lse = lse;
  p.q_at = p.k_at = p.v_at = p.o_at = {heads * tokens * dim, tokens * dim, dim};
  p.lse_at = {heads * tokens, tokens, 1};
  p.batch = static_cast<std::int32_t>(batch);
  p.heads_q = p.heads_kv = static_cast<std::int32_t>(heads);
  p.q_len.longest = p.kv_len.longest = static_cast<std::int32_t>(tokens);
  p.dim_qk = p.dim_v = static_cast<std::int32_t>(dim);
  if (causal != 0) p.band.end = 1;
  p.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  p.whole_chunks = p.whole_outputs = dim % 8 == 0;
  const bool fp16 = name.ends_with("_fp16");
  p.output = fp16 ? OutputFormat::kFp16 : OutputFormat::kBf16;
  const std::string_view idea = name.substr(0, name.find('_'));
  auto* const on = static_cast<CUstream_st*>(stream);
  if (!(fp16 ? launch<Fp16>(idea, p, on) : launch<Bf16>(idea, p, on))) return "no such kernel, or no such head size";
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
