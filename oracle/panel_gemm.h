// Small matrix products for the oracle's fp64 tier: rows times one panel of columns, the same bits with and without AVX2.
#pragma once

#include <cstddef>

namespace assay {

inline constexpr std::size_t kNarrowPanel = 8;  ///< columns
inline constexpr std::size_t kWidePanel = 16;

/// A panel b is [depth][columns] of fp32 numbers, row-major, whose values count as fp64 ones. Row r of the result, at c[r], is
///
///   sum_k a[r][k] b[k][column],    k ascending, one chain of additions from zero per element,
///
/// stored or added to what c[r] holds. In the functions named `exact` the caller promises that every product is exact in the type of a
/// (or an operand is not finite): then a fused multiply-add rounds like a product and a sum, and may be used.
struct PanelGemm {
  /// Narrow panels.
  void (*store_exact)(const double* const* a, std::size_t rows, const float* b, std::size_t depth, double* const* c);
  /// |b| in place of b.
  void (*store_exact_magnitudes)(const double* const* a, std::size_t rows, const float* b, std::size_t depth, double* const* c);
  /// Wide panels.
  void (*add_exact)(const double* const* a, std::size_t rows, const float* b, std::size_t depth, double* const* c);
  void (*add)(const double* const* a, std::size_t rows, const float* b, std::size_t depth, double* const* c);
  /// Wide panels; |b| in place of b, sums in fp32.
  void (*add_exact_magnitudes)(const float* const* a, std::size_t rows, const float* b, std::size_t depth, float* const* c);
  /// One row and a wide panel: sum[column] + sum_k weight[k] |factor[k step] b[k][column] - centre[column]|, each operation rounded; products
  /// factor b must be exact.
  void (*add_deviations)(const double* weight, const double* factor, std::size_t step, const float* b, std::size_t depth,
                         const double* centre, double* sum);
};

/// For any machine.
const PanelGemm& portable_panel_gemm();
/// With AVX2 and FMA; null where the processor has none.
const PanelGemm* avx2_panel_gemm();
/// The faster of the two on this machine.
const PanelGemm& panel_gemm();

}  // namespace assay
