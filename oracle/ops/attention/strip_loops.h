// The loops over keys of the fp64 tier: vectorised, and the same bits for every register width.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "oracle/format.h"
#include "oracle/ops/attention/operands.h"

namespace assay {

inline constexpr std::size_t kSumLanes = 16;

/// Least and largest of numbers seen, by lanes; which of +0 and -0 is left open.
struct Extremes {
  double low[kSumLanes], high[kSumLanes];
  double poison[kSumLanes] = {};  ///< NaN once a number was not finite
  Extremes() {
    std::fill_n(low, kSumLanes, std::numeric_limits<double>::infinity());
    std::fill_n(high, kSumLanes, -std::numeric_limits<double>::infinity());
  }
  double least() const { return *std::min_element(low, low + kSumLanes); }
  double largest() const { return *std::max_element(high, high + kSumLanes); }
  bool finite() const {
    return std::none_of(poison, poison + kSumLanes, [](double x) { return std::isnan(x); });
  }
};
void find_extremes(const double* s, std::size_t n, Extremes& extremes);

/// t = factor (s - reference)
void shift_scores(double factor, double reference, const double* s, std::size_t n, double* t);

/// -max t over runs of 64 columns that start at multiples of 64, for columns [from, to) of a tile; out[c / 64] for column c.
void find_shallowest(const double* t, std::size_t from, std::size_t to, double* out);

/// How weights become multipliers of values. fp64: weights below kWeightFloor are 0, others rounded to `bits` bits, half up, unless
/// those are 53. fp32 from above: as many bits as leave products with v_abs (12 bits at most) exact, zero for zero weights only, at
/// least 2^-90.
struct WeightRounding {
  WeightRounding(Format input, int bits);
  std::uint64_t half = 0, mask = ~std::uint64_t{0};  ///< fp64: (code + half) & mask
  std::uint64_t low32 = 0;                           ///< fp32: (code + low32) & ~low32 of the fp64 code
};

/// Sum of weights and of their squares: lane l holds those of keys congruent to l, in ascending order.
struct WeightSums {
  double weights[kSumLanes] = {}, squares[kSumLanes] = {};
  static double total(const double* lanes) {
    double sum = 0;
    for (std::size_t l = 0; l < kSumLanes; ++l) sum += lanes[l];
    return sum;
  }
};

/// w = round(e^t), n of them (a multiple of 16, the first of a key that is one), added up. Bits of exp64 where t <=
/// 700.
void exp_weights(const WeightRounding& rounding, const double* t, std::size_t n, double* w, WeightSums& sums);

/// Sums of w (-t) and of w x over weights above 0, by lanes like WeightSums.
struct MomentSums {
  double depth[kSumLanes] = {}, x[kSumLanes] = {};
};
void add_moments(const double* w, const double* t, const double* x, std::size_t n, MomentSums& sums);

/// w = round(w factor): weights of values with factors of their own.
void scale_weights(const WeightRounding& rounding, const double* factor, std::size_t n, double* w);

/// |w| / unit as fp32 from above, unit a power of two.
void raise_weights(const WeightRounding& rounding, double unit, const double* w, std::size_t n, float* w32);

/// y = factor x
void multiply(double factor, const double* x, std::size_t n, double* y);

/// Arrays of a row's analysis from its scores.
struct AlikeArrays {
  double* linear;     ///< factor s
  double* depth;      ///< factor (reference - s)
  double* magnitude;  ///< q_norm k_norm
};
void describe_keys(double factor, double reference, double q_norm, const double* s, const double* k_norm, std::size_t n,
                   const AlikeArrays& out);

/// The largest x[i] with spread[i] > limit; 0 if there is none.
double largest_beyond(double limit, const double* spread, const double* x, std::size_t n);
double largest_of(const double* x, std::size_t n);

}  // namespace assay
