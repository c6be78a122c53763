// Small matrix products for the oracle's fp64 tier: rows times one panel of columns, the same bits with and without AVX2.
#pragma once

#include <cstddef>

namespace assay {

inline constexpr std::size_t kPanel = 8;     ///< columns of an fp64 panel
inline constexpr std::size_t kPanel32 = 16;  ///< columns of an fp32 panel

/// A panel b is [depth][columns], row-major. Row r of the result, at c[r], is
///
///   sum_k a[r][k] b[k][column],    k ascending, one chain of additions from zero per element,
///
/// stored or added to what c[r] holds. In `store_exact`, `add_exact` and `add_exact32` the caller promises that every product
/// is exact in the type (or an operand is not finite): then a fused multiply-add rounds like a product and a sum, and may be used.
struct PanelGemm {
  void (*store_exact)(const double* const* a, std::size_t rows, const double* b, std::size_t depth, double* const* c);
  void (*add_exact)(const double* const* a, std::size_t rows, const double* b, std::size_t depth, double* const* c);
  void (*add)(const double* const* a, std::size_t rows, const double* b, std::size_t depth, double* const* c);
  void (*add_exact32)(const float* const* a, std::size_t rows, const float* b, std::size_t depth, float* const* c);
};

/// For any machine.
const PanelGemm& portable_panel_gemm();
/// With AVX2 and FMA; null where the processor has none.
const PanelGemm* avx2_panel_gemm();
/// The faster of the two on this machine.
const PanelGemm& panel_gemm();

}  // namespace assay
