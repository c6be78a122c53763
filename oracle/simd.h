// ASSAY_HOT and ASSAY_VECTORIZE: wider registers for a hot array loop, without changing a bit of its results.
#pragma once

#include <bit>
#include <cstdint>

// A function so marked is compiled twice, for baseline x86-64 and for x86-64-v3 (AVX2), and the loader picks one. Both
// perform the same IEEE operations per element: contraction into fma is off for the whole project (-ffp-contract=off)
// and no marked loop reduces floating-point numbers across elements, so the choice cannot show in the results. Not
// under sanitizers: the loader's resolver runs before their runtime is set up. clang 14 has no clones by architecture
// level.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ASSAY_HOT [[gnu::target_clones("default", "arch=x86-64-v3")]]
#else
#define ASSAY_HOT
#endif

// Stands before a loop whose iterations touch only element i of every array: it stays vectorised when output and input
// are the same array.
#if defined(__clang__)
#define ASSAY_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ASSAY_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace assay {

/// `condition ? a : b` by masks: compilers leave a branch for ?: on doubles, which keeps loops from vectorising.
[[gnu::always_inline]] inline double select(bool condition, double a, double b) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(condition);
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(a) & mask) | (std::bit_cast<std::uint64_t>(b) & ~mask));
}

}  // namespace assay
