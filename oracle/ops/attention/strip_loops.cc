// Loops over keys; each touches element i of its arrays only, or one lane per i mod 16.
#include "oracle/ops/attention/strip_loops.h"

#include <bit>

#include "oracle/exp64_core.h"
#include "oracle/ops/attention/analysis.h"
#include "oracle/vec.h"

namespace assay {
namespace {

constexpr int kValueBits32 = 12;  // at most, of v_abs
constexpr double kLeast32 = 0x1p-90;  // times the least v_abs: a normal number

[[gnu::always_inline]] inline double rounded(double w, std::uint64_t half, std::uint64_t mask) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(w) + half) & mask);
}

[[gnu::always_inline]] inline double largest_lane(const Vec& x) {
  double largest = x[0];
  for (std::size_t l = 1; l < kVec; ++l) largest = x[l] > largest ? x[l] : largest;
  return largest;
}

/// The largest of `least` and n numbers.
[[gnu::always_inline]] inline double largest_from(double least, const double* x, std::size_t n) {
  Vec high[4];
  for (Vec& v : high) v = Vec{} + least;
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (std::size_t k = 0; k < 4; ++k)
      high[k] = select(load(x + i + k * kVec) > high[k], load(x + i + k * kVec), high[k]);
  for (std::size_t k = 1; k < 4; ++k) high[0] = select(high[k] > high[0], high[k], high[0]);
  double largest = largest_lane(high[0]);
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace

ASSAY_HOT void find_extremes(const double* s, std::size_t n, Extremes& extremes) {
  Lanes16 low(extremes.low), high(extremes.high), poison(extremes.poison);
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (std::size_t k = 0; k < Lanes16::kVecs; ++k) {
      const Vec x = load(s + i + k * kVec);
      low.v[k] = select(x < low.v[k], x, low.v[k]);
      high.v[k] = select(x > high.v[k], x, high.v[k]);
      poison.v[k] += x * 0.0;
    }
  low.store_to(extremes.low);
  high.store_to(extremes.high);
  poison.store_to(extremes.poison);
  for (std::size_t l = 0; i + l < n; ++l) {
    const double x = s[i + l];
    extremes.low[l] = x < extremes.low[l] ? x : extremes.low[l];
    extremes.high[l] = x > extremes.high[l] ? x : extremes.high[l];
    extremes.poison[l] += x * 0;
  }
}

ASSAY_HOT void shift_scores(double factor, double reference, const double* s, std::size_t n, double* t) {
  for (std::size_t i = 0; i < n; ++i) t[i] = factor * (s[i] - reference);
}

ASSAY_HOT void find_shallowest(const double* t, std::size_t from, std::size_t to, double* out) {
  constexpr std::size_t kRun = KeySums::kBlock;
  while (from < to) {
    const std::size_t end = (from / kRun + 1) * kRun < to ? (from / kRun + 1) * kRun : to;
    out[from / kRun] = 0.0 - largest_from(-std::numeric_limits<double>::infinity(), t + from, end - from);
    from = end;
  }
}

WeightRounding::WeightRounding(Format input, int bits) {
  if (bits < 53) {
    half = std::uint64_t{1} << (52 - bits);
    mask = ~((std::uint64_t{1} << (53 - bits)) - 1);
  }
  const int value_bits = std::min(info(input).fraction_bits + 1, kValueBits32);
  low32 = (std::uint64_t{1} << (53 - (24 - value_bits))) - 1;
}

ASSAY_HOT void exp_weights(const WeightRounding& rounding, const double* t, std::size_t n, double* w,
                           WeightSums& sums) {
  const std::uint64_t half = rounding.half, mask = rounding.mask;
  Lanes16 weights(sums.weights), squares(sums.squares);
  for (std::size_t i = 0; i < n; i += kSumLanes)
    for (std::size_t k = 0; k < Lanes16::kVecs; ++k) {
      const Vec x = exp64_detail::exp_of_weight(load(t + i + k * kVec)), kept = select(x < kWeightFloor, Vec{}, x);
      const Vec y = from_bits((bits_of(kept) + half) & mask);
      store(w + i + k * kVec, y);
      weights.v[k] += y;
      squares.v[k] += y * y;
    }
  weights.store_to(sums.weights);
  squares.store_to(sums.squares);
}

ASSAY_HOT void add_moments(const double* w, const double* t, const double* x, std::size_t n, MomentSums& sums) {
  Lanes16 depth(sums.depth), other(sums.x);
  for (std::size_t i = 0; i < n; i += kSumLanes)
    for (std::size_t k = 0; k < Lanes16::kVecs; ++k) {
      const std::size_t j = i + k * kVec;
      const Vec of = load(w + j);
      depth.v[k] += select(of > 0.0, of * -load(t + j), Vec{});
      other.v[k] += of * load(x + j);
    }
  depth.store_to(sums.depth);
  other.store_to(sums.x);
}

ASSAY_HOT void scale_weights(const WeightRounding& rounding, const double* factor, std::size_t n, double* w) {
  const std::uint64_t half = rounding.half, mask = rounding.mask;
  for (std::size_t i = 0; i < n; ++i) {
    const double scaled = w[i] * factor[i];
    w[i] = rounded(select(std::abs(scaled) < kWeightFloor, 0.0, scaled), half, mask);
  }
}

ASSAY_HOT void raise_weights(const WeightRounding& rounding, double unit, const double* w, std::size_t n, float* w32) {
  const std::uint64_t low = rounding.low32;
  const double per_unit = 1 / unit;
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(w[i]) * per_unit;
    const double raised = std::bit_cast<double>((std::bit_cast<std::uint64_t>(size) + low) & ~low);
    const double kept = raised > kLeast32 ? raised : kLeast32;
    w32[i] = static_cast<float>(select(size == 0, 0.0, kept));
  }
}

ASSAY_HOT void multiply(double factor, const double* x, std::size_t n, double* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

ASSAY_HOT void describe_keys(double factor, double reference, double q_norm, const double* s, const double* k_norm, std::size_t n,
                             const AlikeArrays& out) {
  double* linear = out.linear;
  double* depth = out.depth;
  double* magnitude = out.magnitude;
  ASSAY_VECTORIZE
  for (std::size_t i = 0; i < n; ++i) {
    linear[i] = factor * s[i];
    depth[i] = factor * (reference - s[i]);
    magnitude[i] = q_norm * k_norm[i];
  }
}

ASSAY_HOT double largest_beyond(double limit, const double* spread, const double* x, std::size_t n) {
  Vec high[2] = {};
  std::size_t i = 0;
  for (; i + 2 * kVec <= n; i += 2 * kVec)
    for (std::size_t k = 0; k < 2; ++k) {
      const Vec kept = select(load(spread + i + k * kVec) > limit, load(x + i + k * kVec), Vec{});
      high[k] = select(kept > high[k], kept, high[k]);
    }
  double largest = largest_lane(select(high[0] > high[1], high[0], high[1]));
  for (; i < n; ++i)
    if (spread[i] > limit && x[i] > largest) largest = x[i];
  return largest;
}

ASSAY_HOT double largest_of(const double* x, std::size_t n) { return largest_from(0, x, n); }

}  // namespace assay
