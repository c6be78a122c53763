// AddressSanitizer beside CUDA: its shadow gap stays mappable for the driver, whose own leaks are not ours.
#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_ASAN 1
#endif
#endif

#ifdef ASSAY_ASAN
// The sanitizer's runtime calls these by name, before main.
extern "C" const char* __asan_default_options();                                                       // NOLINT
extern "C" const char* __lsan_default_suppressions();                                                  // NOLINT
extern "C" const char* __asan_default_options() { return "protect_shadow_gap=0"; }                     // NOLINT
extern "C" const char* __lsan_default_suppressions() { return "leak:libcuda.so\nleak:libnvidia-\n"; }  // NOLINT
#endif
