// The C interface for kernels under test: a shared object exports one function that returns one table. C99 and C++.
//
//   int32_t describe(const char** manifest, assay_message* message)   what kernels there are: JSON, see below
//   int32_t prepare(const assay_call* call, void** state, ...)        may be NULL: choose a variant, get workspace
//   int32_t run(const assay_call* call, void* state, ...)             write every element of every output
//   int32_t release(void* state, ...)                                 may be NULL: called once after every prepare
//
// Every function returns ASSAY_OK or another code, and may say why in `message`. Assay calls them from one thread of a
// process of its own, so that whatever they do ends that process at most. describe is called once in a process; for
// every case follow prepare, run and release. No C++ exception may leave them.
//
// The manifest:
//
//   {"kernels": [{
//      "name": "my_attention",                   letters, digits and _ . - ; no name that assay has already
//      "op": "attention",                        `assay list ops` shows ops and their parameters
//      "summary": "one sentence",
//      "device": "cpu",                          or "cuda"; left out: cpu
//      "formats": ["bf16", "fp32"],              of the inputs
//      "limits": {"hq": "any", "hkv": "any",     numbers that the kernel takes: "any", a list, or an object with
//                 "sq": {"min": 1, "max": 4096}, min, max and multiple_of
//                 "d": [64, 128]},
//      "conventions": {"mask": ["none", "causal"], "align": "any"},      named options that it takes
//      "alignment": 16,                          bytes: of every tensor's address and of all its strides but the last
//      "arithmetic": {"qk": "fp32", "p_format": "fp32"}                  how it computes, as `declared` in a record
//   }]}
//
// A parameter that is named in neither limits nor conventions is taken at its default only: a case that asks for
// anything else is skipped, as is one whose numbers are outside the limits. A field of the arithmetic that is left out
// is unknown, and widens the tolerance to whatever the family allows. prepare may refuse what no limit can say.
#ifndef ASSAY_PLUGIN_H
#define ASSAY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_PLUGIN_ABI 1u
#define ASSAY_PLUGIN_EXPORT __attribute__((visibility("default")))

// Codes that functions return; any other value is an error as ASSAY_FAILED is.
enum {
  ASSAY_OK = 0,
  ASSAY_UNSUPPORTED = 1,    // the case is outside what the kernel does: it is skipped
  ASSAY_OUT_OF_MEMORY = 2,  // skipped, too
  ASSAY_FAILED = 3
};

// Element formats.
enum {
  ASSAY_FP64 = 1,
  ASSAY_FP32 = 2,
  ASSAY_TF32 = 3,
  ASSAY_FP16 = 4,
  ASSAY_BF16 = 5,
  ASSAY_E4M3 = 6,
  ASSAY_E5M2 = 7,
  ASSAY_E8M0 = 8,
  ASSAY_INT32 = 9,
  ASSAY_UINT8 = 10
};

enum { ASSAY_CPU = -1 };  // as a device; from 0 on: a CUDA device's ordinal

// Element [i, j, ...] lies at data + i strides[0] + j strides[1] + ..., in elements. Roles, shapes and what they mean
// are the op's: `assay list ops`, oracle/ops/<op>/<op>.h.
typedef struct assay_tensor {
  const char* role;  // "q", "k", "v", "o", "lse", ...
  void* data;        // element [0, 0, ...]; an input must not be written
  int32_t format;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  int32_t device;
} assay_tensor;

// What `kind` says is set in a scalar. `text` always is: a parameter's value as in a case line.
enum {
  ASSAY_TEXT = 0,     // a name, as "causal"
  ASSAY_INTEGER = 1,  // integer; real with the same value; integers [1]
  ASSAY_REAL = 2,     // real
  ASSAY_INTEGERS = 3  // integers [count], two or more; integer and real are the first
};

// One parameter of the op. Assay gives every parameter, with its default where the case does not name it.
typedef struct assay_scalar {
  const char* name;
  const char* text;
  int32_t kind;
  int64_t integer;
  double real;
  const int64_t* integers;
  int64_t count;
} assay_scalar;

typedef struct assay_call {
  uint32_t struct_size;  // sizeof(assay_call) as assay knows it: later versions append members
  int32_t device;        // where all tensors lie
  const char* kernel;    // its name in the manifest
  const assay_tensor* inputs;
  int64_t input_count;
  const assay_tensor* outputs;  // allocated, and filled with NaN
  int64_t output_count;
  const assay_scalar* scalars;
  int64_t scalar_count;
  void* stream;  // a cudaStream_t for all work on the device, never waited for by the kernel; NULL on the CPU
} assay_call;

// Zero-terminated. Of a failure: why. Of a run that succeeds: the variant it took, as "tile 64x64, 2 splits".
typedef struct assay_message {
  char text[256];
} assay_message;

typedef struct assay_plugin {
  uint32_t struct_size;  // sizeof(assay_plugin)
  uint32_t abi_version;  // ASSAY_PLUGIN_ABI
  int32_t (*describe)(const char** manifest, assay_message* message);
  int32_t (*run)(const assay_call* call, void* state, assay_message* message);
  int32_t (*prepare)(const assay_call* call, void** state, assay_message* message);
  int32_t (*release)(void* state, assay_message* message);
} assay_plugin;

// The one function to define. The table must live as long as the shared object.
ASSAY_PLUGIN_EXPORT const assay_plugin* assay_get_plugin(void);

// The tensor with that role, or NULL.
static inline const assay_tensor* assay_find_input(const assay_call* call, const char* role) {
  for (int64_t i = 0; i < call->input_count; ++i)
    if (strcmp(call->inputs[i].role, role) == 0) return &call->inputs[i];
  return NULL;
}
static inline const assay_tensor* assay_find_output(const assay_call* call, const char* role) {
  for (int64_t i = 0; i < call->output_count; ++i)
    if (strcmp(call->outputs[i].role, role) == 0) return &call->outputs[i];
  return NULL;
}
// The parameter with that name, or NULL.
static inline const assay_scalar* assay_find_scalar(const assay_call* call, const char* name) {
  for (int64_t i = 0; i < call->scalar_count; ++i)
    if (strcmp(call->scalars[i].name, name) == 0) return &call->scalars[i];
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif  // ASSAY_PLUGIN_H
