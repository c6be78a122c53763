// A kernel of your own for assay, on the GPU: one block per query row, logits in shared memory, arithmetic in fp32.
//
//   nvcc -O2 -shared -Xcompiler -fPIC -I include examples/attention_plugin.cu -o attention_plugin_cuda.so
//   assay check --plugin attention_plugin_cuda.so
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>

#include "assay_plugin.h"

namespace {

constexpr int kThreads = 128;

// 8192 keys: the logits of one row take 32 KiB of shared memory.
constexpr char kManifest[] = R"({"kernels": [{
  "name": "example_attention_cuda",
  "op": "attention",
  "summary": "one block per row, in fp32 on the CUDA cores",
  "device": "cuda",
  "formats": ["fp32", "fp16", "bf16"],
  "limits": {"b": "any", "hq": "any", "hkv": "any", "sq": "any", "skv": {"max": 8192}, "d": "any", "dv": "any",
             "scale": "any", "offset": "any", "pad_rows": "any", "pad_dim": "any"},
  "conventions": {"mask": ["none", "causal"], "align": ["br"], "layout": "any", "expand": "any", "lse": "any",
                  "masked_nonfinite": "any"},
  "arithmetic": {"qk": "fp32", "pv": "fp32", "score_store": "fp32", "scale_form": "on_score", "exponential": "ex2_approx",
                 "p_format": "fp32", "row_sum_of": "unrounded_p", "normalize": "divide", "subnormals": "kept",
                 "max_policy": "global", "tile_order": "forward", "splits": 1}
}]})";

/// A tensor as the device sees it: [b, h, s, c], or [b, h, s] for the LSE.
struct View {
  void* data;
  int32_t format;
  int64_t strides[4];

  __device__ int64_t at(int64_t b, int64_t h, int64_t s, int64_t c = 0) const {
    return b * strides[0] + h * strides[1] + s * strides[2] + c * strides[3];
  }
  __device__ float load(int64_t e) const {
    if (format == ASSAY_FP32) return static_cast<const float*>(data)[e];
    if (format == ASSAY_FP16) return __half2float(static_cast<const __half*>(data)[e]);
    return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[e]);
  }
  __device__ void store(int64_t e, float value) const {
    if (format == ASSAY_FP32)
      static_cast<float*>(data)[e] = value;
    else if (format == ASSAY_FP16)
      static_cast<__half*>(data)[e] = __float2half_rn(value);
    else
      static_cast<__nv_bfloat16*>(data)[e] = __float2bfloat16_rn(value);
  }
};

struct Problem {
  View q, k, v, o, lse;  // lse.data is null where the call wants none
  int64_t heads, group, queries, keys, d, dv;
  float scale, lse_unit;  // the LSE is in base e or 2
  bool causal;
};

__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }  // a NaN stays the larger one
__device__ float sum(float a, float b) { return a + b; }

template <float (*kCombine)(float, float)>
__device__ float reduce(float value) {
  __shared__ float all[kThreads];
  all[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = kCombine(all[threadIdx.x], all[threadIdx.x + half]);
  }
  __syncthreads();
  const float result = all[0];
  __syncthreads();  // before anyone writes it again
  return result;
}

__global__ void attention(Problem p) {
  extern __shared__ float weights[];
  const int64_t i = blockIdx.x % p.queries, h = blockIdx.x / p.queries % p.heads, b = blockIdx.x / p.queries / p.heads;
  const int64_t own = p.causal ? i + p.keys - p.queries + 1 : p.keys, keys = own < p.keys ? own : p.keys;

  float m = -INFINITY;
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) {
    float s = 0;
    for (int64_t c = 0; c < p.d; ++c) s += p.q.load(p.q.at(b, h, i, c)) * p.k.load(p.k.at(b, h / p.group, j, c));
    weights[j] = s * p.scale;
    m = larger(m, weights[j]);
  }
  m = reduce<larger>(m);
  const bool empty = m == -INFINITY;

  float l = 0;
  for (int64_t j = threadIdx.x; j < keys && !empty; j += kThreads) l += weights[j] = expf(weights[j] - m);
  l = reduce<sum>(l);  // with a barrier behind the weights

  for (int64_t c = threadIdx.x; c < p.dv; c += kThreads) {
    float o = 0;
    for (int64_t j = 0; j < keys && !empty; ++j) o += weights[j] * p.v.load(p.v.at(b, h / p.group, j, c));
    p.o.store(p.o.at(b, h, i, c), empty ? 0.0f : o / l);
  }
  if (p.lse.data != nullptr && threadIdx.x == 0)
    p.lse.store(p.lse.at(b, h, i), empty ? -INFINITY : (m + logf(l)) * p.lse_unit);
}

View view(const assay_tensor* t) {
  View v{t != nullptr ? t->data : nullptr, t != nullptr ? t->format : 0, {}};
  for (int32_t axis = 0; t != nullptr && axis < t->rank; ++axis) v.strides[axis] = t->strides[axis];
  return v;
}

int32_t describe(const char** manifest, assay_message*) {
  *manifest = kManifest;
  return ASSAY_OK;
}

int32_t run(const assay_call* call, void*, assay_message* message) {
  const assay_tensor *q = assay_find_input(call, "q"), *k = assay_find_input(call, "k"),
                     *v = assay_find_input(call, "v");
  Problem p{};
  p.q = view(q);
  p.k = view(k);
  p.v = view(v);
  p.o = view(assay_find_output(call, "o"));
  p.lse = view(assay_find_output(call, "lse"));
  p.heads = q->shape[1];
  p.group = q->shape[1] / k->shape[1];
  p.queries = q->shape[2];
  p.keys = k->shape[2];
  p.d = q->shape[3];
  p.dv = v->shape[3];
  p.scale = static_cast<float>(assay_find_scalar(call, "scale")->real);
  p.lse_unit = strcmp(assay_find_scalar(call, "lse")->text, "2") == 0 ? 1.4426950408889634f : 1.0f;
  p.causal = strcmp(assay_find_scalar(call, "mask")->text, "causal") == 0;

  const int64_t rows = q->shape[0] * p.heads * p.queries;
  if (rows > INT32_MAX) {
    snprintf(message->text, sizeof message->text, "%lld rows are more than one launch has",
             static_cast<long long>(rows));
    return ASSAY_UNSUPPORTED;
  }
  if (rows > 0)
    attention<<<static_cast<unsigned>(rows), kThreads, static_cast<size_t>(p.keys) * sizeof(float),
                static_cast<cudaStream_t>(call->stream)>>>(p);
  const cudaError_t launched = cudaGetLastError();
  snprintf(message->text, sizeof message->text, "%s",
           launched == cudaSuccess ? "one block per row" : cudaGetErrorString(launched));
  return launched == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

const assay_plugin kTable{sizeof kTable, ASSAY_PLUGIN_ABI, describe, run, nullptr, nullptr};

}  // namespace

const assay_plugin* assay_get_plugin(void) { return &kTable; }
