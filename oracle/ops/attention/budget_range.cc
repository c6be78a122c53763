// Hulls of the declared intermediates of a row (numerics.md 2.14, "Range"): where one may leave its format, nothing is
// promised.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/exp64.h"
#include "oracle/ops/attention/row_budget.h"

namespace assay {
namespace {

/// 2^x in words.
std::string power(double x) { return fmt::format("2^{:.4g}", x); }

double log2_of(double x) { return log64(x) / kLn2; }

}  // namespace

/// The largest positive number that a logit may be on its way to a smaller one, times log2 e: a bias, added in one step or two, may
/// bring it back, or -inf meet it as +inf. A soft cap bounds what the bias is added to.
double RowBudget::before_bias() const {
  if (!has_bias() || params_.softcap > 0) return 0;
  double hull = row_.logit_without_weight;
  // Two biases: the additive one is at most their sum and what ALiBi takes away at the longest distance.
  const double alibi = params_.data_mask == DataMask::kAdditive && row_.slope > 0
                           ? row_.slope * static_cast<double>(params_.len_q + params_.len_kv) : 0;
  for (std::size_t j = 0; j < n_; ++j) {
    const double factor = std::abs(row_.factor[row_.factor.size() == 1 ? 0 : j]);
    hull = std::max(hull, factor * row_.magnitude[j] + std::max(row_.bias[j] + alibi, 0.0));
  }
  return hull * kLog2E * kSlack;
}

void RowBudget::find_range(RowBound& bound) {
  const auto outside = [&](std::string_view what, double value, double limit) {
    bound.out_of_range = fmt::format("{}: {:.6g} > {:.6g}", what, value, limit);
  };
  const double score_limit = arith_.score_store == ScoreStore::kFp16 ? info(Format::kFp16).max_finite : kMax32;
  if (!(row_.score_hull * kSlack <= score_limit)) return outside("S", row_.score_hull, score_limit);
  // c^ = fl32(scale log2 e) and rcp(l), o below must be normal numbers to keep their relative error.
  double c = row_.uniform ? 0 : row_.factor_without_weight * kLog2E;
  for (double factor : row_.factor) c = std::max(c, std::abs(factor) * kLog2E);
  if (c > kMax32) return outside("scale log2 e", c, kMax32);
  if (c > 0 && c < kMinNormal32) return outside("1 / (scale log2 e)", 1 / c, 1 / kMinNormal32);
  const double largest_logit = largest_max_ * kLog2E;
  if (!(largest_logit * kSlack <= kMax32)) return outside("s c", largest_logit, kMax32);
  if (const double hull = before_bias(); !(hull <= kMax32)) return outside("s c before the bias", hull, kMax32);
  // A kernel that adds the sink's weight at the end does not raise the maximum first.
  if (!(above_ <= 87)) return outside("exp(sink - maximum), exponent", above_, 87);

  const FormatInfo& p = info(weight_.format);
  const double top = weight_.offset + weight_.lazy + shift_ + log2_of(p_factor_);
  const double p_limit = std::min(126.0, log2_of(p.max_finite));
  if (!(weight_.offset + weight_.lazy + log2_of(p_factor_) <= p_limit) || (p.storage_bits == 8 && !(top <= p_limit))) {
    bound.out_of_range = fmt::format("P saturation: {} > {:.6g}", power(top), p.max_finite);
    return;
  }
  const double residual = std::min(p_limit - top + shift_, weight_.offset - log2_of(p.min_normal));
  if (!(shift_ <= residual)) return outside("P, residual exponent of the maximum", shift_, residual);

  const double raised = weight_.offset + weight_.lazy + shift_;
  const double l_limit = 0x1p126;
  const double l = (static_cast<double>(n_) + 1) * exp2_64(raised) * exp64(above_);
  if (!(l <= l_limit)) return outside("l", l, l_limit);
  // A kernel may multiply its outputs by v_scale / l, rounded: 1 / l is at most 2^raised and at least 1 / (this l).
  for (const double factor : row_.value_factor) {
    const double f = std::abs(factor);
    if (!(f * exp2_64(raised) * kSlack <= kMax32)) return outside("v_scale / l", f * exp2_64(raised), kMax32);
    if (f > 0 && !(l / f <= 1 / kMinNormal32)) return outside("l / v_scale", l / f, 1 / kMinNormal32);
  }
  double sum = *std::max_element(row_.operands->v_abs_sum.begin(), row_.operands->v_abs_sum.end());
  if (!(sum * exp2_64(raised) / factor_low_ * kSlack <= kMax32)) {
    // The head's sum serves all rows; only huge values make the row's own one matter.
    const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
    std::vector<double> sums(dv);
    for (std::size_t j = 0; j < n_; ++j) {
      const double* v = row_.operands->v.data() + static_cast<std::size_t>(row_.keys[j]) * dv;
      const double factor = std::max(1.0, std::abs(value_factor(j)));
      for (std::size_t ch = 0; ch < dv; ++ch) sums[ch] += std::abs(v[ch]) * factor;
    }
    sum = *std::max_element(sums.begin(), sums.end());
    const double hull = sum * exp2_64(raised) * kSlack;
    if (!(hull <= kMax32)) return outside("O accumulator", hull, kMax32);
  }
  if (!(sum_error_ < 0.5)) return outside("row sum, relative error", sum_error_, 0.5);
}

}  // namespace assay
