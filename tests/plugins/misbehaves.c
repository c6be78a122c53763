// A plug-in whose kernels compute attention as the example does, and then do what no kernel may: one kernel per deed.
#define assay_get_plugin example_get_plugin
#include "examples/attention_plugin.c"
#undef assay_get_plugin
ASSAY_PLUGIN_EXPORT const assay_plugin* assay_get_plugin(void);

#include <signal.h>
#include <unistd.h>

static const char* const kDeeds[] = {
    "good",          "prints",       "half_output",  "reshapes",     "overrun",         "underrun",
    "writes_input",  "run_fails",    "run_segv",     "run_exit",     "run_hang",        "run_refuses",
    "prepare_fails", "prepare_segv", "prepare_hang", "prepare_exit", "prepare_refuses", "out_of_memory",
    "release_fails", "release_segv", "no_zero"};

static int32_t describe_deeds(const char** manifest, assay_message* message) {
  static char text[16384];
  (void)message;
  size_t at = (size_t)snprintf(text, sizeof text, "{\"kernels\": [");
  for (size_t n = 0; n < sizeof kDeeds / sizeof *kDeeds; ++n)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "%s{\"name\": \"%s\", \"op\": \"attention\", \"formats\": [\"fp32\"],"
                           " \"limits\": {\"sq\": \"any\", \"skv\": \"any\"},"
                           " \"arithmetic\": {\"qk\": \"fp32\", \"pv\": \"fp32\", \"p_format\": \"fp32\"}}",
                           n == 0 ? "" : ", ", kDeeds[n]);
  snprintf(text + at, sizeof text - at, "]}");
  *manifest = text;
  return ASSAY_OK;
}

static int does(const assay_call* call, const char* deed) { return strcmp(call->kernel, deed) == 0; }

// The signal as it is without a sanitizer's handler.
static void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static void hang(void) {
  for (;;) sleep(1);
}

static int32_t prepare_deed(const assay_call* call, void** state, assay_message* message) {
  if (does(call, "prepare_segv")) crash();
  if (does(call, "prepare_hang")) hang();
  if (does(call, "prepare_exit")) _exit(0);
  if (does(call, "prepare_fails")) {
    strcpy(message->text, "no plan for this");
    return 7;
  }
  if (does(call, "prepare_refuses")) {
    strcpy(message->text, "odd lengths are beyond me");
    return ASSAY_UNSUPPORTED;
  }
  if (does(call, "out_of_memory")) return ASSAY_OUT_OF_MEMORY;
  return prepare(call, state, message);
}

static int32_t run_deed(const assay_call* call, void* state, assay_message* message) {
  const assay_tensor* o = assay_find_output(call, "o");
  const int32_t code = run(call, state, message);
  float* data = o->data;
  if (does(call, "prints")) {
    printf("{\"id\":2,\"status\":\"ok\"}\nwords on standard output\n");
    fflush(stdout);
    close(STDOUT_FILENO);
  }
  if (does(call, "half_output")) memset(data + o->strides[2], 0xff, (size_t)o->strides[2] * sizeof *data);
  if (does(call, "reshapes")) {  // says that the outputs have one row, and leaves the others as they were
    memset(data + o->strides[2], 0xff, (size_t)(o->strides[2] * (o->shape[2] - 1)) * sizeof *data);
    ((int64_t*)o->shape)[2] = 1;
    ((int64_t*)call->inputs[0].shape)[2] = 1;
    strcpy((char*)o->role, "x");
  }
  if (does(call, "overrun")) data[o->strides[2] * o->shape[2]] = 1.0f;
  if (does(call, "underrun")) data[-1] = 1.0f;
  if (does(call, "writes_input")) *(float*)assay_find_input(call, "v")->data += 1.0f;
  if (does(call, "run_segv")) crash();
  if (does(call, "run_hang")) hang();
  if (does(call, "run_exit")) _exit(0);
  if (does(call, "no_zero")) memset(message->text, 'x', sizeof message->text);
  if (does(call, "run_fails")) {
    strcpy(message->text, "launch failed");
    return -3;
  }
  if (does(call, "run_refuses")) {
    message->text[0] = '\0';
    return ASSAY_UNSUPPORTED;
  }
  return code;
}

// The kernel's name is in the call, and release has none: run leaves it here.
static char last_kernel[64];

static int32_t run_and_remember(const assay_call* call, void* state, assay_message* message) {
  strncpy(last_kernel, call->kernel, sizeof last_kernel - 1);
  return run_deed(call, state, message);
}

static int32_t release_or_not(void* state, assay_message* message) {
  if (strcmp(last_kernel, "release_segv") == 0) crash();
  release(state, message);
  return strcmp(last_kernel, "release_fails") == 0 ? 9 : ASSAY_OK;
}

const assay_plugin* assay_get_plugin(void) {
  static const assay_plugin table = {sizeof table,     ASSAY_PLUGIN_ABI, describe_deeds,
                                     run_and_remember, prepare_deed,     release_or_not};
  return &table;
}
