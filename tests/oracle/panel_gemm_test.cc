// The oracle's matrix products with and without AVX2: the same bits for any number of rows, and those of the sums they
// promise.
#include "oracle/panel_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace assay {
namespace {

/// Numbers of bf16 with mixed exponents, so that products are exact and sums round.
template <class T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(n);
  for (T& value : x)
    value = static_cast<T>(std::ldexp(static_cast<double>(random() % 511) - 255, static_cast<int>(random() % 24) - 12));
  return x;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
using Product = void (*)(const T* const*, std::size_t, const float*, std::size_t, T* const*);

template <class T>
std::vector<T> run(Product<T> product, std::size_t rows, std::size_t depth, std::size_t columns) {
  const std::vector<T> a = numbers<T>(rows * depth, 1);
  const std::vector<float> b = numbers<float>(depth * columns, 2);
  std::vector<T> c = numbers<T>(rows * columns, 3);
  std::vector<const T*> from(rows);
  std::vector<T*> to(rows);
  for (std::size_t r = 0; r < rows; ++r) from[r] = a.data() + r * depth, to[r] = c.data() + r * columns;
  product(from.data(), rows, b.data(), depth, to.data());
  return c;
}

TEST(PanelGemm, TheProcessorsProductsHaveTheBitsOfThePortableOnes) {
  const PanelGemm* fast = avx2_panel_gemm();
  if (fast == nullptr) GTEST_SKIP() << "no AVX2 here";
  const PanelGemm& plain = portable_panel_gemm();
  for (const std::size_t depth : {1U, 7U, 64U, 256U})
    for (std::size_t rows = 1; rows <= 14; ++rows) {
      const auto same = [&](auto product, std::size_t columns) {
        return same_bits(run(fast->*product, rows, depth, columns), run(plain.*product, rows, depth, columns));
      };
      EXPECT_TRUE(same(&PanelGemm::store_exact, kNarrowPanel)) << rows << " rows, depth " << depth;
      EXPECT_TRUE(same(&PanelGemm::store_exact_magnitudes, kNarrowPanel)) << rows << " rows, depth " << depth;
      EXPECT_TRUE(same(&PanelGemm::add_exact, kWidePanel)) << rows << " rows, depth " << depth;
      EXPECT_TRUE(same(&PanelGemm::add, kWidePanel)) << rows << " rows, depth " << depth;
      EXPECT_TRUE(same(&PanelGemm::add_exact_magnitudes, kWidePanel)) << rows << " rows, depth " << depth;
    }
}

TEST(PanelGemm, ProductsThatAreNotExactAreRoundedBeforeTheyAreAdded) {
  // In x y - fl(x y) a fused operation would leave the rounding error of the first product.
  const double third = 1.0 / 3;
  const float y = 1 + 0x1p-23F;
  const std::vector<double> a = {-third * static_cast<double>(y), third};
  std::vector<float> b(2 * kWidePanel, 1.0F);
  std::fill(b.begin() + kWidePanel, b.end(), y);
  const double* row = a.data();
  for (const PanelGemm* gemm : {&portable_panel_gemm(), avx2_panel_gemm()}) {
    if (gemm == nullptr) continue;
    std::vector<double> c(kWidePanel, 0.0);
    double* to = c.data();
    gemm->add(&row, 1, b.data(), 2, &to);
    for (const double value : c) EXPECT_EQ(value, 0);
  }
}

TEST(PanelGemm, DeviationsHaveTheBitsOfThePortableOnes) {
  const PanelGemm* fast = avx2_panel_gemm();
  if (fast == nullptr) GTEST_SKIP() << "no AVX2 here";
  constexpr std::size_t kDepth = 100;
  const std::vector<double> weight = numbers<double>(kDepth, 4), factor = numbers<double>(kDepth, 5),
                            centre = numbers<double>(kWidePanel, 6);
  const std::vector<float> b = numbers<float>(kDepth * kWidePanel, 7);
  for (const std::size_t step : {0U, 1U}) {
    std::vector<double> sum = numbers<double>(kWidePanel, 8), other = sum;
    fast->add_deviations(weight.data(), factor.data(), step, b.data(), kDepth, centre.data(), sum.data());
    portable_panel_gemm().add_deviations(weight.data(), factor.data(), step, b.data(), kDepth, centre.data(),
                                         other.data());
    EXPECT_TRUE(same_bits(sum, other)) << "step " << step;
  }
}

}  // namespace
}  // namespace assay
