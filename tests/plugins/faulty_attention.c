// Ten faults planted in an attention kernel of its own: scalar fp32 over tiles of 32 keys, sharing nothing with the
// kernels of assay. A kernel's name is the failure mode that describes its fault; `sound` has none.
#include <math.h>
#include <stdlib.h>

#include "assay_plugin.h"

enum { kTile = 32 };

#define KERNEL(name)                                                                                                   \
  "{\"name\": \"own_" name                                                                                             \
  "\", \"op\": \"attention\", \"summary\": \"tiles of 32 keys in scalar fp32\","                                       \
  " \"formats\": [\"fp32\", \"bf16\"],"                                                                                \
  " \"limits\": {\"b\": \"any\", \"hq\": \"any\", \"hkv\": \"any\", \"sq\": \"any\", \"skv\": {\"max\": 65536},"       \
  " \"d\": {\"max\": 512}, \"dv\": {\"max\": 512}, \"scale\": \"any\", \"offset\": \"any\", \"pad_rows\": \"any\", "   \
  "\"pad_dim\": \"any\"},"                                                                                             \
  " \"conventions\": {\"mask\": [\"none\", \"causal\"], \"align\": [\"br\"], \"lse\": [\"e\", \"none\"], \"layout\": " \
  "\"any\", \"expand\": \"any\", \"masked_nonfinite\": \"any\"},"                                                      \
  " \"arithmetic\": {\"qk\": \"fp32\", \"pv\": \"fp32\", \"score_store\": \"fp32\", \"scale_form\": \"on_score\","     \
  " \"exponential\": \"ex2_approx\", \"p_format\": \"fp32\", \"row_sum_of\": \"unrounded_p\","                         \
  " \"row_sum_tree\": \"sequential\", \"normalize\": \"divide\", \"subnormals\": \"kept\","                            \
  " \"max_policy\": \"every_tile\", \"tile_order\": \"forward\", \"tile_n\": 32, \"splits\": 1}}"

// clang-format off
static const char kManifest[] =
    "{\"kernels\": ["
    KERNEL("sound") ","
    KERNEL("logit_scale") ","
    KERNEL("value_scale") ","
    KERNEL("ghost_keys") ","
    KERNEL("dropped_keys") ","
    KERNEL("mask_edge") ","
    KERNEL("head_map") ","
    KERNEL("state_frame") ","
    KERNEL("unwritten_output") ","
    KERNEL("false_max") ","
    KERNEL("nan_empty_extent")
    "]}";
// clang-format on

static int32_t describe(const char** manifest, assay_message* message) {
  (void)message;
  *manifest = kManifest;
  return ASSAY_OK;
}

static int faulty(const assay_call* call, const char* fault) {
  return strcmp(call->kernel + strlen("own_"), fault) == 0;
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
  bits = value == value ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
  ((uint16_t*)t->data)[at] = (uint16_t)(bits >> 16);
}

static int64_t at(const assay_tensor* t, int64_t b, int64_t h, int64_t i, int64_t c) {
  return b * t->strides[0] + h * t->strides[1] + i * t->strides[2] + c * t->strides[3];
}

// The state of one row: running maximum, sum, and O of dv channels.
typedef struct row_state {
  float m, l;
  float* o;
} row_state;

// Adds keys [first, end) of one tile, whose logits are x.
static void add_tile(const assay_call* call, row_state* s, const float* x, const assay_tensor* v, int64_t b, int64_t kv,
                     int64_t first, int64_t end) {
  const int64_t dv = v->shape[3];
  float m = s->m;
  for (int64_t j = first; j < end; ++j)
    if (x[j - first] > m || x[j - first] != x[j - first]) m = x[j - first];
  const float shift = m == -INFINITY && !faulty(call, "nan_empty_extent") ? 0.0f : m, alpha = expf(s->m - shift);
  s->l *= alpha;
  for (int64_t c = 0; c < dv; ++c)
    if (!faulty(call, "state_frame")) s->o[c] *= alpha;
  for (int64_t j = first; j < end; ++j) {
    const float p = expf(x[j - first] - shift);
    s->l += p;
    for (int64_t c = 0; c < dv; ++c) s->o[c] += p * load(v, at(v, b, kv, j, c));
  }
  s->m = m;
}

static void one_row(const assay_call* call, float* o_row, int64_t b, int64_t h, int64_t i) {
  const assay_tensor *q = assay_find_input(call, "q"), *k = assay_find_input(call, "k"),
                     *v = assay_find_input(call, "v");
  const assay_tensor *o = assay_find_output(call, "o"), *lse = assay_find_output(call, "lse");
  float scale = (float)assay_find_scalar(call, "scale")->real;
  if (faulty(call, "logit_scale")) scale *= 1.02f;
  const int causal = strcmp(assay_find_scalar(call, "mask")->text, "causal") == 0;
  const int64_t queries = q->shape[2], keys = k->shape[2], d = q->shape[3], dv = v->shape[3];
  const int64_t kv = faulty(call, "head_map") ? h % k->shape[1] : h / (q->shape[1] / k->shape[1]);
  int64_t admissible = keys;
  if (causal) {
    admissible = i + keys - queries + 1 + (faulty(call, "mask_edge") ? 1 : 0);
    admissible = admissible < 0 ? 0 : admissible > keys ? keys : admissible;
  }
  if (faulty(call, "dropped_keys") && admissible > kTile) admissible = (admissible - 1) / kTile * kTile;
  if (faulty(call, "unwritten_output") && queries > 1 && i == queries - 1) return;

  row_state s = {faulty(call, "false_max") ? -40.0f : -INFINITY, 0, o_row};
  memset(o_row, 0, (size_t)dv * sizeof *o_row);
  for (int64_t first = 0; first < keys; first += kTile) {
    const int64_t end = first + kTile < keys ? first + kTile : keys;
    float x[kTile];
    if (first >= admissible && !faulty(call, "nan_empty_extent")) break;
    for (int64_t j = first; j < end; ++j) {
      float sum = 0;
      for (int64_t c = 0; c < d; ++c) sum += load(q, at(q, b, h, i, c)) * load(k, at(k, b, kv, j, c));
      x[j - first] = j < admissible ? sum * scale : -INFINITY;
    }
    add_tile(call, &s, x, v, b, kv, first, end < admissible || faulty(call, "nan_empty_extent") ? end : admissible);
  }
  if (faulty(call, "ghost_keys") && s.l > 0) s.l += expf(0.0f - s.m);
  const int empty = (s.m == -INFINITY || s.l == 0) && !faulty(call, "nan_empty_extent");
  for (int64_t c = 0; c < dv; ++c) {
    float value = empty ? 0.0f : o_row[c] / s.l;
    if (faulty(call, "value_scale")) value *= 0.97f;
    store(o, at(o, b, h, i, c), value);
  }
  if (lse != NULL)
    ((float*)lse->data)[b * lse->strides[0] + h * lse->strides[1] + i * lse->strides[2]] =
        empty ? -INFINITY : s.m + logf(s.l);
}

static int32_t run(const assay_call* call, void* state, assay_message* message) {
  (void)state;
  (void)message;
  const assay_tensor *q = assay_find_input(call, "q"), *v = assay_find_input(call, "v");
  float* row = malloc(((size_t)v->shape[3] + 1) * sizeof *row);
  if (row == NULL) return ASSAY_OUT_OF_MEMORY;
  for (int64_t b = 0; b < q->shape[0]; ++b)
    for (int64_t h = 0; h < q->shape[1]; ++h)
      for (int64_t i = 0; i < q->shape[2]; ++i) one_row(call, row, b, h, i);
  free(row);
  return ASSAY_OK;
}

const assay_plugin* assay_get_plugin(void) {
  static const assay_plugin table = {sizeof table, ASSAY_PLUGIN_ABI, describe, run, NULL, NULL};
  return &table;
}
