// Intervals of P and their roundings.
//
// P = ex2(y), y = fma(s, c, -fl(M_t c)) or fl(fl(x - M_t) log2 e). Its natural logarithm is off from x_j - M_t by
//   E_j + error_t                the logit's own error and that of the maximum
//   per_nat |x_j - M_t|          c (2u), rounding of y (u); or the subtraction, the product, the constant
//   per_maximum |M_t|            fl(M_t c), only where that is subtracted
//   constant                     the exponential; with an offset, its subtraction
// The kernel's fp32 P lies between both ends, and rounding is monotone, so its rounded P lies between the rounded ends.
#include "oracle/ops/attention/weight_replay.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "oracle/budget.h"
#include "oracle/exp64.h"

namespace assay {

PositiveRounder::PositiveRounder(Format format)
    : rounds_(format != Format::kFp32),
      dropped_(52 - info(format).fraction_bits),
      min_normal_(info(format).min_normal),
      to_subnormal_(0x1.8p52 * info(format).min_subnormal) {}

double PositiveRounder::operator()(double value) const {
  if (!rounds_) return value;
  if (value < min_normal_) return (value + to_subnormal_) - to_subnormal_;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t odd = bits >> dropped_ & 1, half = (std::uint64_t{1} << (dropped_ - 1)) - 1;
  return std::bit_cast<double>((bits + half + odd) >> dropped_ << dropped_);
}

namespace {

void resize(std::size_t n, WeightReplay& out) {
  out.p.resize(n), out.error.resize(n), out.tilde.resize(n), out.gap.resize(n);
}

/// Rounds both ends of p e^(+-error). `unit`: the power of two that P was multiplied by after the exponential.
void round_ends(std::size_t j, double unit, bool may_flush, const PositiveRounder& round, WeightReplay& out) {
  const double p = out.p[j], error = out.error[j];
  const double spread = error <= 0.5 ? error * (1 + error) : exp64(std::min(error, 700.0));  // >= e^error - 1
  double low = std::max(0.0, p - p * spread), high = p + p * spread;
  if (high < 2 * kMinNormal32 * std::max(1.0, unit)) {
    low = may_flush ? 0.0 : std::max(0.0, low - 4 * kMinSubnormal32);
    high += 4 * kMinSubnormal32;
  }
  const double first = round(low), last = round(high);
  out.tilde[j] = first / 2 + last / 2;
  out.gap[j] = (last - first) / 2;
}

}  // namespace

void replay_weights(const WalkInput& row, const SplitWalk& split, double max_logit, int offset,
                    const WeightErrors& errors, const PositiveRounder& round, WeightReplay& out) {
  resize(row.keys.size(), out);
  const double unit = exp2_64(offset);
  for (const TileStep& step : split.steps) {
    for (std::size_t j = step.begin; j < step.end; ++j) out.p[j] = step.depth - row.depth[j];
    const double shared = step.error + errors.per_maximum * std::abs(max_logit - step.depth) + errors.constant;
    for (std::size_t j = step.begin; j < step.end; ++j) {
      const double before = row.logit_error[j] + step.error;
      out.error[j] = row.logit_error[j] + shared + errors.per_nat * (std::abs(out.p[j]) + before);
    }
    exp64(out.p.data() + step.begin, out.p.data() + step.begin, step.end - step.begin);
    for (std::size_t j = step.begin; j < step.end; ++j) {
      out.p[j] *= unit;
      round_ends(j, unit, errors.may_flush, round, out);
    }
  }
}

void replay_folded(const WalkInput& row, const SplitWalk& split, std::span<const double> score, float c,
                   double exponential, const WeightErrors& errors, const PositiveRounder& round, WeightReplay& out) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  resize(row.keys.size(), out);
  for (const TileStep& step : split.steps) {
    const double shift = static_cast<double>(static_cast<float>(score[step.top] * static_cast<double>(c)));
    for (std::size_t j = step.begin; j < step.end; ++j) {
      // The product is exact in fp64 and the difference off by 2^-53 of itself: nearly always one fp32 number.
      const double y = score[j] * static_cast<double>(c) - shift, doubt = std::abs(y) * 0x1p-52;
      const double low = static_cast<double>(static_cast<float>(y - doubt)),
                   high = static_cast<double>(static_cast<float>(y + doubt));
      out.p[j] = exp2_64(low);
      out.error[j] = exponential + (high - low) * kLn2 + 0x1p-50;
    }
    for (std::size_t j = step.begin; j < step.end; ++j) round_ends(j, 1, errors.may_flush, round, out);
  }
}

}  // namespace assay
