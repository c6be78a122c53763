// A kernel of your own for assay, on the CPU: plain attention in fp32, for fp32 and bf16 tensors of any strides.
//
//   cc -O2 -shared -fPIC -I include examples/attention_plugin.c -lm -o attention_plugin.so
//   assay check --plugin attention_plugin.so
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "assay_plugin.h"

static const char kManifest[] =
    "{\"kernels\": [{"
    "  \"name\": \"example_attention\","
    "  \"op\": \"attention\","
    "  \"summary\": \"one row at a time, in scalar fp32\","
    "  \"formats\": [\"fp32\", \"bf16\"],"
    "  \"limits\": {\"b\": \"any\", \"hq\": \"any\", \"hkv\": \"any\", \"sq\": \"any\", \"skv\": {\"max\": 65536},"
    "               \"d\": {\"max\": 512}, \"dv\": {\"max\": 512}, \"scale\": \"any\","
    "               \"offset\": \"any\", \"pad_rows\": \"any\", \"pad_dim\": \"any\"},"
    "  \"conventions\": {\"mask\": [\"none\", \"causal\"], \"align\": [\"br\"], \"layout\": \"any\","
    "                    \"expand\": \"any\", \"lse\": \"any\", \"masked_nonfinite\": \"any\"},"
    "  \"arithmetic\": {\"qk\": \"fp32\", \"pv\": \"fp32\", \"score_store\": \"fp32\", \"scale_form\": \"on_score\","
    "                   \"exponential\": \"ex2_approx\", \"p_format\": \"fp32\", \"row_sum_of\": \"unrounded_p\","
    "                   \"row_sum_tree\": \"sequential\", \"normalize\": \"divide\", \"subnormals\": \"kept\","
    "                   \"max_policy\": \"global\", \"tile_order\": \"forward\", \"splits\": 1}"
    "}]}";

static int32_t describe(const char** manifest, assay_message* message) {
  (void)message;
  *manifest = kManifest;
  return ASSAY_OK;
}

static float load(const assay_tensor* t, int64_t at) {
  if (t->format == ASSAY_FP32) return ((const float*)t->data)[at];
  const uint32_t bits = (uint32_t)((const uint16_t*)t->data)[at] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void store(const assay_tensor* t, int64_t at, float value) {
  if (t->format == ASSAY_FP32) {
    ((float*)t->data)[at] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value == value)
    bits += 0x7fffu + ((bits >> 16) & 1u);  // to the nearest, ties to even
  else
    bits |= 0x400000u;  // a NaN whose lower half is cut off stays one
  ((uint16_t*)t->data)[at] = (uint16_t)(bits >> 16);
}

// Where the vector (or, of the LSE, the number) of a batch entry, head and position begins.
static int64_t vector_at(const assay_tensor* t, int64_t b, int64_t h, int64_t i) {
  return b * t->strides[0] + h * t->strides[1] + i * t->strides[2];
}

// What prepare hands to run: the weights of one row.
typedef struct workspace {
  float* p;
} workspace;

static int32_t prepare(const assay_call* call, void** state, assay_message* message) {
  const int64_t keys = assay_find_input(call, "k")->shape[2];
  workspace* w = malloc(sizeof *w);
  float* p = malloc(((size_t)keys + 1) * sizeof *p);
  if (w == NULL || p == NULL) {
    snprintf(message->text, sizeof message->text, "the weights of %lld keys", (long long)keys);
    free(w);
    free(p);
    return ASSAY_OUT_OF_MEMORY;
  }
  w->p = p;
  *state = w;
  return ASSAY_OK;
}

static int32_t release(void* state, assay_message* message) {
  (void)message;
  free(((workspace*)state)->p);
  free(state);
  return ASSAY_OK;
}

static int32_t run(const assay_call* call, void* state, assay_message* message) {
  const assay_tensor *q = assay_find_input(call, "q"), *k = assay_find_input(call, "k");
  const assay_tensor *v = assay_find_input(call, "v"), *o = assay_find_output(call, "o");
  const assay_tensor* lse = assay_find_output(call, "lse");  // NULL for lse=none
  const float scale = (float)assay_find_scalar(call, "scale")->real;
  const int causal = strcmp(assay_find_scalar(call, "mask")->text, "causal") == 0;
  const int base_two = strcmp(assay_find_scalar(call, "lse")->text, "2") == 0;
  const int64_t heads = q->shape[1], group = heads / k->shape[1], queries = q->shape[2], keys = k->shape[2];
  const int64_t d = q->shape[3], dv = v->shape[3];
  float* p = ((workspace*)state)->p;

  for (int64_t b = 0; b < q->shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        int64_t admissible = keys;
        if (causal && i + keys - queries + 1 < keys) admissible = i + keys - queries + 1;
        float m = -INFINITY;
        for (int64_t j = 0; j < admissible; ++j) {
          const int64_t qi = vector_at(q, b, h, i), kj = vector_at(k, b, h / group, j);
          float s = 0;
          for (int64_t c = 0; c < d; ++c) s += load(q, qi + c * q->strides[3]) * load(k, kj + c * k->strides[3]);
          p[j] = s * scale;
          if (p[j] > m || p[j] != p[j]) m = p[j];  // a NaN stays the maximum
        }
        const int empty = m == -INFINITY;  // no key, or none that is not masked by its own logit
        float l = 0;
        for (int64_t j = 0; j < admissible && !empty; ++j) l += p[j] = expf(p[j] - m);
        for (int64_t c = 0; c < dv; ++c) {
          float sum = 0;
          for (int64_t j = 0; j < admissible && !empty; ++j)
            sum += p[j] * load(v, vector_at(v, b, h / group, j) + c * v->strides[3]);
          store(o, vector_at(o, b, h, i) + c * o->strides[3], empty ? 0.0f : sum / l);
        }
        if (lse != NULL) {
          const float natural = empty ? -INFINITY : m + logf(l);
          store(lse, vector_at(lse, b, h, i), base_two ? natural * 1.4426950408889634f : natural);
        }
      }
  snprintf(message->text, sizeof message->text, "one row at a time");
  return ASSAY_OK;
}

const assay_plugin* assay_get_plugin(void) {
  static const assay_plugin table = {sizeof table, ASSAY_PLUGIN_ABI, describe, run, prepare, release};
  return &table;
}
