// Rows times panels: register blocks of 6 rows by one panel, in AVX2 and FMA where the processor has them.
#include "oracle/panel_gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay {
namespace {

constexpr std::size_t kBlockRows = 6;  // 6 rows by two registers: 12 accumulators of AVX2's 16 registers
constexpr std::size_t kLine = 64;      // bytes of a cache line, and of one row of a panel

template <class T, std::size_t kColumns, bool kAdd>
void portable(const T* const* a, std::size_t rows, const T* b, std::size_t depth, T* const* c) {
  for (std::size_t r = 0; r < rows; ++r) {
    T sum[kColumns] = {};
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t j = 0; j < kColumns; ++j) sum[j] += a[r][k] * b[k * kColumns + j];
    for (std::size_t j = 0; j < kColumns; ++j) c[r][j] = kAdd ? c[r][j] + sum[j] : sum[j];
  }
}

#if defined(__x86_64__)
#define ASSAY_AVX2 [[gnu::target("avx2,fma")]]
#define ASSAY_AVX2_INLINE [[gnu::target("avx2,fma"), gnu::always_inline]] inline

struct Doubles {
  using Value = double;
  using Register = __m256d;
  static constexpr std::size_t kColumns = kPanel;
  ASSAY_AVX2_INLINE static Register load(const double* p) { return _mm256_loadu_pd(p); }
  ASSAY_AVX2_INLINE static Register broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  ASSAY_AVX2_INLINE static Register zero() { return _mm256_setzero_pd(); }
  ASSAY_AVX2_INLINE static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  ASSAY_AVX2_INLINE static Register mul(Register x, Register y) { return _mm256_mul_pd(x, y); }
  ASSAY_AVX2_INLINE static Register fma(Register x, Register y, Register z) { return _mm256_fmadd_pd(x, y, z); }
  ASSAY_AVX2_INLINE static void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
};

struct Floats {
  using Value = float;
  using Register = __m256;
  static constexpr std::size_t kColumns = kPanel32;
  ASSAY_AVX2_INLINE static Register load(const float* p) { return _mm256_loadu_ps(p); }
  ASSAY_AVX2_INLINE static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  ASSAY_AVX2_INLINE static Register zero() { return _mm256_setzero_ps(); }
  ASSAY_AVX2_INLINE static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  ASSAY_AVX2_INLINE static Register mul(Register x, Register y) { return _mm256_mul_ps(x, y); }
  ASSAY_AVX2_INLINE static Register fma(Register x, Register y, Register z) { return _mm256_fmadd_ps(x, y, z); }
  ASSAY_AVX2_INLINE static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
};

template <class Lane, std::size_t kRows, bool kAdd, bool kFused>
ASSAY_AVX2_INLINE void block(const typename Lane::Value* const* a, const typename Lane::Value* b, std::size_t depth,
                             typename Lane::Value* const* c) {
  using Register = typename Lane::Register;
  constexpr std::size_t kHalf = Lane::kColumns / 2;
  Register low[kRows], high[kRows];
  const typename Lane::Value* rows[kRows];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kRows; ++r) low[r] = high[r] = Lane::zero(), rows[r] = a[r];
  for (std::size_t k = 0; k < depth; ++k) {
    const Register b_low = Lane::load(b + k * Lane::kColumns), b_high = Lane::load(b + k * Lane::kColumns + kHalf);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kRows; ++r) {
      const Register x = Lane::broadcast(rows[r] + k);
      if constexpr (kFused) {
        low[r] = Lane::fma(x, b_low, low[r]);
        high[r] = Lane::fma(x, b_high, high[r]);
      } else {
        low[r] = Lane::add(low[r], Lane::mul(x, b_low));
        high[r] = Lane::add(high[r], Lane::mul(x, b_high));
      }
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kRows; ++r) {
    if constexpr (kAdd) {
      low[r] = Lane::add(Lane::load(c[r]), low[r]);
      high[r] = Lane::add(Lane::load(c[r] + kHalf), high[r]);
    }
    Lane::store(c[r], low[r]);
    Lane::store(c[r] + kHalf, high[r]);
  }
}

template <class Lane, bool kAdd, bool kFused>
ASSAY_AVX2 void avx2(const typename Lane::Value* const* a, std::size_t rows, const typename Lane::Value* b,
                     std::size_t depth, typename Lane::Value* const* c) {
  // Panels are used in the order in which they lie: while the blocks of this one run, the next one comes in.
  const char* next = reinterpret_cast<const char*>(b + depth * Lane::kColumns);
  const std::size_t lines = depth * kBlockRows / rows + 1;
  std::size_t r = 0;
  for (; r + kBlockRows <= rows; r += kBlockRows) {
    for (std::size_t line = 0; line < lines; ++line, next += kLine) _mm_prefetch(next, _MM_HINT_T0);
    block<Lane, kBlockRows, kAdd, kFused>(a + r, b, depth, c + r);
  }
  switch (rows - r) {
    case 5: block<Lane, 5, kAdd, kFused>(a + r, b, depth, c + r); break;
    case 4: block<Lane, 4, kAdd, kFused>(a + r, b, depth, c + r); break;
    case 3: block<Lane, 3, kAdd, kFused>(a + r, b, depth, c + r); break;
    case 2: block<Lane, 2, kAdd, kFused>(a + r, b, depth, c + r); break;
    case 1: block<Lane, 1, kAdd, kFused>(a + r, b, depth, c + r); break;
    default: break;
  }
}
#endif

}  // namespace

const PanelGemm& portable_panel_gemm() {
  static constexpr PanelGemm kGemm{portable<double, kPanel, false>, portable<double, kPanel, true>,
                                   portable<double, kPanel, true>, portable<float, kPanel32, true>};
  return kGemm;
}

const PanelGemm* avx2_panel_gemm() {
#if defined(__x86_64__)
  static constexpr PanelGemm kGemm{avx2<Doubles, false, true>, avx2<Doubles, true, true>, avx2<Doubles, true, false>,
                                   avx2<Floats, true, true>};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kGemm;
#endif
  return nullptr;
}

const PanelGemm& panel_gemm() {
  static const PanelGemm& best = avx2_panel_gemm() != nullptr ? *avx2_panel_gemm() : portable_panel_gemm();
  return best;
}

}  // namespace assay
