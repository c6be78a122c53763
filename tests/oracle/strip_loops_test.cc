// Loops over keys four at a time against the same written key by key: not a bit may differ.
#include "oracle/ops/attention/strip_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "oracle/exp64.h"
#include "oracle/ops/attention/analysis.h"
#include "oracle/ops/attention/row_errors.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Log-weights around every branch: the top, the floor 2^-800 = e^-554.5, below it, no key.
std::vector<double> log_weights(std::size_t n) {
  std::mt19937_64 random(1);
  std::vector<double> t(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(random() >> 11) * 0x1p-53;
    const double kinds[] = {-x, -20 * x, -600 * x, -554.5 - 0.1 * x, -1e5 * x, -kInf, 0.0, -0.0, x};
    t[i] = kinds[i % std::size(kinds)];
  }
  return t;
}

TEST(StripLoops, WeightsAreRoundedExponentialsAndTheirSumsRunByLanes) {
  const std::vector<double> t = log_weights(64 * kSumLanes);
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kFp32, Format::kE4m3}) {
    const WeightRounding rounding(format, weight_bits(format));
    std::vector<double> w(t.size());
    WeightSums sums, expected;
    exp_weights(rounding, t.data(), t.size(), w.data(), sums);
    for (std::size_t i = 0; i < t.size(); ++i) {
      const double exact = exp64(t[i]), kept = exact < kWeightFloor ? 0.0 : exact;
      const double x = std::bit_cast<double>((std::bit_cast<std::uint64_t>(kept) + rounding.half) & rounding.mask);
      ASSERT_EQ(w[i], x) << info(format).name << " " << t[i];
      expected.weights[i % kSumLanes] += x;
      expected.squares[i % kSumLanes] += x * x;
    }
    EXPECT_EQ(std::memcmp(&sums, &expected, sizeof sums), 0) << info(format).name;
  }
}

TEST(StripLoops, MomentsSkipKeysWithoutWeight) {
  const std::vector<double> t = log_weights(16 * kSumLanes);
  std::vector<double> w(t.size()), x(t.size());
  WeightSums unused;
  exp_weights(WeightRounding(Format::kBf16, weight_bits(Format::kBf16)), t.data(), t.size(), w.data(), unused);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 + static_cast<double>(i % 37);
  MomentSums sums, expected;
  add_moments(w.data(), t.data(), x.data(), t.size(), sums);
  for (std::size_t i = 0; i < t.size(); ++i) {
    expected.depth[i % kSumLanes] += w[i] > 0 ? w[i] * -t[i] : 0.0;
    expected.x[i % kSumLanes] += w[i] * x[i];
  }
  EXPECT_EQ(std::memcmp(&sums, &expected, sizeof sums), 0);
  EXPECT_TRUE(std::isfinite(WeightSums::total(sums.depth)));
}

TEST(StripLoops, ExtremesAreFoundWhereverTheyLie) {
  for (const std::size_t n : {1U, 3U, 4U, 15U, 16U, 17U, 31U, 100U})
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<double> s(n, 1.0);
      s[at] = 7;
      s[(at + n / 2) % n] = n > 1 ? -3 : 7;
      Extremes extremes;
      find_extremes(s.data(), n, extremes);
      EXPECT_EQ(extremes.largest(), *std::max_element(s.begin(), s.end())) << n << " " << at;
      EXPECT_EQ(extremes.least(), *std::min_element(s.begin(), s.end())) << n << " " << at;
      EXPECT_TRUE(extremes.finite());
      s[at] = at % 2 == 0 ? kInf : -kInf;
      find_extremes(s.data(), n, extremes);
      EXPECT_FALSE(extremes.finite()) << n << " " << at;
      EXPECT_EQ(largest_of(s.data(), n), std::max(0.0, *std::max_element(s.begin(), s.end()))) << n << " " << at;
    }
}

TEST(StripLoops, TheLargestBeyondALimitCountsOnlyThose) {
  for (const std::size_t n : {1U, 5U, 8U, 13U, 40U})
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<double> spread(n, 1.0), x(n, 9.0);
      EXPECT_EQ(largest_beyond(1, spread.data(), x.data(), n), 0) << n;
      spread[at] = 2, x[at] = 5;
      EXPECT_EQ(largest_beyond(1, spread.data(), x.data(), n), 5) << n << " " << at;
    }
}

TEST(StripLoops, EachRunOf64KeysHasItsShallowest) {
  std::vector<double> t(256);
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = -1 - static_cast<double>((i * 37) % 256);
  for (const std::size_t from : {0U, 3U, 64U, 70U})
    for (const std::size_t to : {71U, 128U, 200U, 256U}) {
      double out[4] = {};
      find_shallowest(t.data(), from, to, out);
      for (std::size_t run = from / 64; run * 64 < to; ++run) {
        const auto first = t.begin() + static_cast<std::ptrdiff_t>(std::max(from, run * 64));
        const auto last = t.begin() + static_cast<std::ptrdiff_t>(std::min(to, run * 64 + 64));
        EXPECT_EQ(out[run], -*std::max_element(first, last)) << from << " " << to << " " << run;
      }
    }
}

}  // namespace
}  // namespace assay
