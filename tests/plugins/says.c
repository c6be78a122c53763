// A plug-in that does, before any kernel runs, what the environment tells it: ASSAY_TEST_DEED, ASSAY_TEST_MANIFEST.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "assay_plugin.h"

static int told(const char* deed) {
  const char* all = getenv("ASSAY_TEST_DEED");
  return all != NULL && strcmp(all, deed) == 0;
}

// The signal as it is without a sanitizer's handler.
static void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

static void hang(void) {
  for (;;) sleep(1);
}

__attribute__((constructor)) static void load(void) {
  if (told("load_segv")) crash();
  if (told("load_hang")) hang();
  if (told("load_exit")) _exit(0);
}

static int32_t describe(const char** manifest, assay_message* message) {
  if (told("describe_segv")) crash();
  if (told("describe_hang")) hang();
  if (told("describe_exit")) _exit(3);
  if (told("describe_fails")) {
    strcpy(message->text, "the licence has run out");
    return 5;
  }
  if (told("describe_null")) return ASSAY_OK;
  if (told("describe_long")) {
    static char text[1 << 20];
    memset(text, ' ', sizeof text - 1);
    *manifest = text;
    return ASSAY_OK;
  }
  if (told("not_utf8")) {
    *manifest = "{\"kernels\": [\"\xff\"]}";
    return ASSAY_OK;
  }
  *manifest = getenv("ASSAY_TEST_MANIFEST");
  return ASSAY_OK;
}

static int32_t run(const assay_call* call, void* state, assay_message* message) {
  (void)call, (void)state, (void)message;
  return ASSAY_FAILED;
}

const assay_plugin* assay_get_plugin(void) {
  static assay_plugin table = {sizeof table, ASSAY_PLUGIN_ABI, describe, run, NULL, NULL};
  if (told("no_table")) return NULL;
  if (told("version")) table.abi_version = 7;
  if (told("small")) table.struct_size = 16;
  if (told("large")) table.struct_size = sizeof table + 64;
  if (told("no_describe")) table.describe = NULL;
  if (told("no_run")) table.run = NULL;
  return &table;
}
