// Rows times panels: register blocks of 6 rows by 8 or 16 columns, in AVX2 and FMA where the processor has them.
#include "oracle/panel_gemm.h"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay {
namespace {

template <class T, std::size_t kColumns, bool kAdd, bool kMagnitudes>
void portable(const T* const* a, std::size_t rows, const float* b, std::size_t depth, T* const* c) {
  for (std::size_t r = 0; r < rows; ++r) {
    T sum[kColumns] = {};
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const float x = b[k * kColumns + j];
        sum[j] += a[r][k] * static_cast<T>(kMagnitudes ? std::abs(x) : x);
      }
    for (std::size_t j = 0; j < kColumns; ++j) c[r][j] = kAdd ? c[r][j] + sum[j] : sum[j];
  }
}

void portable_deviations(const double* weight, const double* factor, std::size_t step, const float* b, std::size_t depth,
                         const double* centre, double* sum) {
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t j = 0; j < kWidePanel; ++j)
      sum[j] += weight[k] * std::abs(factor[k * step] * static_cast<double>(b[k * kWidePanel + j]) - centre[j]);
}

#if defined(__x86_64__)
#define ASSAY_AVX2 [[gnu::target("avx2,fma")]]
#define ASSAY_AVX2_INLINE [[gnu::target("avx2,fma"), gnu::always_inline]] inline

constexpr std::size_t kBlockRows = 6;  // 6 rows by two registers: 12 accumulators of AVX2's 16 registers
constexpr std::size_t kLine = 64;      // bytes of a cache line

/// Eight columns in two registers of doubles; kFused where products are exact.
template <bool kFused, bool kMagnitudes>
struct Doubles {
  using Value = double;
  using Register = __m256d;
  static constexpr std::size_t kColumns = 8;
  ASSAY_AVX2_INLINE static Register panel(const float* p) {
    const __m128 x = _mm_loadu_ps(p);
    return _mm256_cvtps_pd(kMagnitudes ? _mm_andnot_ps(_mm_set1_ps(-0.0F), x) : x);
  }
  ASSAY_AVX2_INLINE static Register load(const double* p) { return _mm256_loadu_pd(p); }
  ASSAY_AVX2_INLINE static Register broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  ASSAY_AVX2_INLINE static Register zero() { return _mm256_setzero_pd(); }
  ASSAY_AVX2_INLINE static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  ASSAY_AVX2_INLINE static Register multiply_add(Register x, Register y, Register sum) {
    if constexpr (kFused) return _mm256_fmadd_pd(x, y, sum);
    else return _mm256_add_pd(sum, _mm256_mul_pd(x, y));
  }
  ASSAY_AVX2_INLINE static void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
};

/// Sixteen columns of magnitudes in two registers of floats.
struct Magnitudes {
  using Value = float;
  using Register = __m256;
  static constexpr std::size_t kColumns = 16;
  ASSAY_AVX2_INLINE static Register panel(const float* p) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), _mm256_loadu_ps(p)); }
  ASSAY_AVX2_INLINE static Register load(const float* p) { return _mm256_loadu_ps(p); }
  ASSAY_AVX2_INLINE static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  ASSAY_AVX2_INLINE static Register zero() { return _mm256_setzero_ps(); }
  ASSAY_AVX2_INLINE static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  ASSAY_AVX2_INLINE static Register multiply_add(Register x, Register y, Register sum) { return _mm256_fmadd_ps(x, y, sum); }
  ASSAY_AVX2_INLINE static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
};

/// kRows rows by Lane::kColumns columns of a panel of kStride.
template <class Lane, std::size_t kStride, std::size_t kRows, bool kAdd>
ASSAY_AVX2_INLINE void block(const typename Lane::Value* const* a, const float* b, std::size_t depth,
                             typename Lane::Value* const* c, std::size_t column) {
  using Register = typename Lane::Register;
  constexpr std::size_t kHalf = Lane::kColumns / 2;
  Register low[kRows], high[kRows];
  const typename Lane::Value* rows[kRows];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kRows; ++r) low[r] = high[r] = Lane::zero(), rows[r] = a[r];
  for (std::size_t k = 0; k < depth; ++k) {
    const Register b_low = Lane::panel(b + k * kStride + column), b_high = Lane::panel(b + k * kStride + column + kHalf);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kRows; ++r) {
      const Register x = Lane::broadcast(rows[r] + k);
      low[r] = Lane::multiply_add(x, b_low, low[r]);
      high[r] = Lane::multiply_add(x, b_high, high[r]);
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kRows; ++r) {
    typename Lane::Value* to = c[r] + column;
    if constexpr (kAdd) {
      low[r] = Lane::add(Lane::load(to), low[r]);
      high[r] = Lane::add(Lane::load(to + kHalf), high[r]);
    }
    Lane::store(to, low[r]);
    Lane::store(to + kHalf, high[r]);
  }
}

template <class Lane, std::size_t kStride, std::size_t kRows, bool kAdd>
ASSAY_AVX2_INLINE void across(const typename Lane::Value* const* a, const float* b, std::size_t depth,
                              typename Lane::Value* const* c) {
  for (std::size_t column = 0; column < kStride; column += Lane::kColumns) block<Lane, kStride, kRows, kAdd>(a, b, depth, c, column);
}

ASSAY_AVX2 void avx2_deviations(const double* weight, const double* factor, std::size_t step, const float* b, std::size_t depth,
                                const double* centre, double* sum) {
  constexpr std::size_t kRegisters = kWidePanel / 4;
  const __m256d sign = _mm256_set1_pd(-0.0);
  __m256d total[kRegisters], middle[kRegisters];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRegisters; ++i) total[i] = _mm256_loadu_pd(sum + 4 * i), middle[i] = _mm256_loadu_pd(centre + 4 * i);
  for (std::size_t k = 0; k < depth; ++k) {
    const __m256d w = _mm256_broadcast_sd(weight + k), f = _mm256_broadcast_sd(factor + k * step);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRegisters; ++i) {
      const __m256d x = _mm256_fmsub_pd(f, _mm256_cvtps_pd(_mm_loadu_ps(b + k * kWidePanel + 4 * i)), middle[i]);
      total[i] = _mm256_add_pd(total[i], _mm256_mul_pd(w, _mm256_andnot_pd(sign, x)));
    }
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRegisters; ++i) _mm256_storeu_pd(sum + 4 * i, total[i]);
}

template <class Lane, std::size_t kStride, bool kAdd>
ASSAY_AVX2 void avx2(const typename Lane::Value* const* a, std::size_t rows, const float* b, std::size_t depth,
                     typename Lane::Value* const* c) {
  // Panels are used in the order in which they lie: while the blocks of this one run, the next one comes in.
  const char* next = reinterpret_cast<const char*>(b + depth * kStride);
  const std::size_t lines = depth * kStride * sizeof(float) / kLine * kBlockRows / rows + 1;
  std::size_t r = 0;
  for (; r + kBlockRows <= rows; r += kBlockRows) {
    for (std::size_t line = 0; line < lines; ++line, next += kLine) _mm_prefetch(next, _MM_HINT_T0);
    across<Lane, kStride, kBlockRows, kAdd>(a + r, b, depth, c + r);
  }
  switch (rows - r) {
    case 5: across<Lane, kStride, 5, kAdd>(a + r, b, depth, c + r); break;
    case 4: across<Lane, kStride, 4, kAdd>(a + r, b, depth, c + r); break;
    case 3: across<Lane, kStride, 3, kAdd>(a + r, b, depth, c + r); break;
    case 2: across<Lane, kStride, 2, kAdd>(a + r, b, depth, c + r); break;
    case 1: across<Lane, kStride, 1, kAdd>(a + r, b, depth, c + r); break;
    default: break;
  }
}
#endif

}  // namespace

const PanelGemm& portable_panel_gemm() {
  static constexpr PanelGemm kGemm{
      portable<double, kNarrowPanel, false, false>, portable<double, kNarrowPanel, false, true>,
      portable<double, kWidePanel, true, false>, portable<double, kWidePanel, true, false>, portable<float, kWidePanel, true, true>,
      portable_deviations};
  return kGemm;
}

const PanelGemm* avx2_panel_gemm() {
#if defined(__x86_64__)
  static constexpr PanelGemm kGemm{avx2<Doubles<true, false>, kNarrowPanel, false>, avx2<Doubles<true, true>, kNarrowPanel, false>,
                                   avx2<Doubles<true, false>, kWidePanel, true>, avx2<Doubles<false, false>, kWidePanel, true>,
                                   avx2<Magnitudes, kWidePanel, true>, avx2_deviations};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kGemm;
#endif
  return nullptr;
}

const PanelGemm& panel_gemm() {
  static const PanelGemm& best = avx2_panel_gemm() != nullptr ? *avx2_panel_gemm() : portable_panel_gemm();
  return best;
}

}  // namespace assay
