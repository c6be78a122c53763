// Loops over keys; each touches element i of its arrays only, or one lane per i mod 16.
#include "oracle/ops/attention/strip_loops.h"

#include <bit>

#include "oracle/ops/attention/analysis.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr int kValueBits32 = 12;  // at most, of v_abs
constexpr double kLeast32 = 0x1p-90;  // times the least v_abs: a normal number

[[gnu::always_inline]] inline double rounded(double w, std::uint64_t half, std::uint64_t mask) {
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(w) + half) & mask);
}

}  // namespace

ASSAY_HOT void find_extremes(const double* s, std::size_t n, Extremes& extremes) {
  double low[kSumLanes], high[kSumLanes], poison[kSumLanes];
  for (std::size_t l = 0; l < kSumLanes; ++l) low[l] = extremes.low[l], high[l] = extremes.high[l], poison[l] = extremes.poison[l];
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) {
      low[l] = s[i + l] < low[l] ? s[i + l] : low[l];
      high[l] = s[i + l] > high[l] ? s[i + l] : high[l];
      poison[l] += s[i + l] * 0;
    }
  for (std::size_t l = 0; i + l < n; ++l) {
    low[l] = s[i + l] < low[l] ? s[i + l] : low[l];
    high[l] = s[i + l] > high[l] ? s[i + l] : high[l];
    poison[l] += s[i + l] * 0;
  }
  for (std::size_t l = 0; l < kSumLanes; ++l) extremes.low[l] = low[l], extremes.high[l] = high[l], extremes.poison[l] = poison[l];
}

ASSAY_HOT void shift_scores(double factor, double reference, const double* s, std::size_t n, double* t) {
  for (std::size_t i = 0; i < n; ++i) t[i] = factor * (s[i] - reference);
}

ASSAY_HOT void find_shallowest(const double* t, std::size_t from, std::size_t to, double* out) {
  constexpr std::size_t kRun = KeySums::kBlock;
  while (from < to) {
    const std::size_t end = (from / kRun + 1) * kRun < to ? (from / kRun + 1) * kRun : to;
    double high[kSumLanes];
    for (std::size_t l = 0; l < kSumLanes; ++l) high[l] = -std::numeric_limits<double>::infinity();
    std::size_t i = from;
    for (; i + kSumLanes <= end; i += kSumLanes)
      for (std::size_t l = 0; l < kSumLanes; ++l) high[l] = t[i + l] > high[l] ? t[i + l] : high[l];
    for (std::size_t l = 0; i + l < end; ++l) high[l] = t[i + l] > high[l] ? t[i + l] : high[l];
    double largest = high[0];
    for (double lane : high) largest = lane > largest ? lane : largest;
    out[from / kRun] = 0.0 - largest;
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

ASSAY_HOT void round_weights(const WeightRounding& rounding, std::size_t n, double* w, WeightSums& sums) {
  const std::uint64_t half = rounding.half, mask = rounding.mask;
  double weights[kSumLanes], squares[kSumLanes];
  for (std::size_t l = 0; l < kSumLanes; ++l) weights[l] = sums.weights[l], squares[l] = sums.squares[l];
  for (std::size_t i = 0; i < n; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) {
      const double kept = select(w[i + l] < kWeightFloor, 0.0, w[i + l]);
      const double x = rounded(kept, half, mask);
      w[i + l] = x;
      weights[l] += x;
      squares[l] += x * x;
    }
  for (std::size_t l = 0; l < kSumLanes; ++l) sums.weights[l] = weights[l], sums.squares[l] = squares[l];
}

ASSAY_HOT void add_moments(const double* w, const double* t, const double* x, std::size_t n, MomentSums& sums) {
  double depth[kSumLanes], other[kSumLanes];
  for (std::size_t l = 0; l < kSumLanes; ++l) depth[l] = sums.depth[l], other[l] = sums.x[l];
  for (std::size_t i = 0; i < n; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) {
      depth[l] += select(w[i + l] > 0, w[i + l] * -t[i + l], 0.0);
      other[l] += w[i + l] * x[i + l];
    }
  for (std::size_t l = 0; l < kSumLanes; ++l) sums.depth[l] = depth[l], sums.x[l] = other[l];
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
  double lanes[kSumLanes] = {};
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) {
      const double kept = select(spread[i + l] > limit, x[i + l], 0.0);
      lanes[l] = kept > lanes[l] ? kept : lanes[l];
    }
  for (std::size_t l = 0; i + l < n; ++l) {
    const double kept = select(spread[i + l] > limit, x[i + l], 0.0);
    lanes[l] = kept > lanes[l] ? kept : lanes[l];
  }
  double largest = 0;
  for (double lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

ASSAY_HOT double largest_of(const double* x, std::size_t n) {
  double lanes[kSumLanes] = {};
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (std::size_t l = 0; l < kSumLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  for (std::size_t l = 0; i + l < n; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  double largest = 0;
  for (double lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

}  // namespace assay
