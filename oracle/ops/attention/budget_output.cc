// Tau of a row's outputs from its weights' errors, P's rounding and the accumulation of P V; cheap majorants first.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/ops/attention/lanes.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/simd.h"

namespace assay {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNegligible = 0x1p-50;
constexpr double kRefine = 0.125;  // the share of tau by which the cheap majorants may widen it

/// sum over the keys with p < minimum of min(p, eta).
ASSAY_HOT double lost_weight(const double* p, std::size_t n, double minimum, double eta) {
  double lost[kLanes] = {};
  for_lanes(n, [&](std::size_t l, std::size_t j) {
    const double error = p[j] < eta ? p[j] : eta;
    lost[l] += p[j] < minimum ? error : 0.0;
  });
  return lane_sum(lost);
}

}  // namespace

struct RowBudget::Channels {
  std::vector<double> abs_p;    ///< sum p |v|
  std::vector<double> weight;   ///< sum p psi |v - o|
  std::vector<double> abs_all;  ///< sum |v|
  std::vector<double> floors;   ///< sum of P's absolute rounding errors times |v|
  std::vector<double> hull;     ///< largest |v - o|
  double lost = 0;              ///< sum of P's absolute rounding errors
};

/// Relative to the denominator: a P below the smallest normal number is rounded by at most half the smallest subnormal
/// or lost.
static double subnormal_p(const WeightFormat& weight, double scale) {
  return weight.unit_roundoff == 0 ? 0 : info(weight.format).min_subnormal / 2 * scale;
}

double RowBudget::value_factor(std::size_t j) const {
  const std::vector<double>& factors = row_.value_factor;
  return factors.empty() ? 1 : factors[factors.size() == 1 ? 0 : j];
}

/// sum_j weight_j |v_j - o| over the row's keys, per channel.
std::vector<double> RowBudget::deviations(const std::vector<double>& weight, const std::vector<double>& o) const {
  const HeadOperands& head = *row_.operands;
  const double one = 1;
  const std::size_t step = row_.value_factor.size() > 1 ? 1 : 0;
  const double* factors = row_.value_factor.empty() ? &one : row_.value_factor.data();
  std::vector<double> centre(head.value_panels() * kWidePanel, 0.0), sum(centre.size(), 0.0);
  std::copy(o.begin(), o.end(), centre.begin());
  std::array<double, kKeyTile> tile_weight, tile_factor;
  tile_factor.fill(0);
  for (std::size_t j = 0; j < n_;) {
    const std::size_t tile = static_cast<std::size_t>(row_.keys[j]) / kKeyTile;
    const auto start = static_cast<std::int32_t>(tile * kKeyTile), first = row_.keys[j];
    const auto end =
        static_cast<std::size_t>(std::lower_bound(row_.keys.begin() + static_cast<std::ptrdiff_t>(j), row_.keys.end(),
                                                  start + static_cast<std::int32_t>(kKeyTile)) -
                                 row_.keys.begin());
    const auto depth = static_cast<std::size_t>(row_.keys[end - 1] - first + 1);
    const double *weights = weight.data() + j, *of_keys = factors + j * step;
    if (depth > end - j) {  // keys between them get the weight 0
      std::fill_n(tile_weight.begin(), depth, 0.0);
      for (std::size_t i = j; i < end; ++i) {
        tile_weight[static_cast<std::size_t>(row_.keys[i] - first)] = weight[i];
        tile_factor[static_cast<std::size_t>(row_.keys[i] - first)] = factors[i * step];
      }
      weights = tile_weight.data();
      if (step > 0) of_keys = tile_factor.data();
    }
    for (std::size_t panel = 0; panel < head.value_panels(); ++panel)
      panel_gemm().add_deviations(weights, of_keys, step, head.v_panels.data() + head.v_panel(tile, panel) +
                                      static_cast<std::size_t>(first - start) * kWidePanel,
                                  depth, centre.data() + panel * kWidePanel, sum.data() + panel * kWidePanel);
    j = end;
  }
  sum.resize(o.size());
  return sum;
}

/// Blocks of k consecutive keys that hold an admissible one. Tiles start at multiples of 16 in every kernel with
/// declared tiles; with unknown tiles, or tiles that k does not divide, a block may straddle two of ours.
double RowBudget::blocks(int k) const {
  if (listed()) return std::min(static_cast<double>(n_), pieces(params_.list_len, k) + 1);
  double count = 0;
  if (contiguous()) {
    count = row_.keys.back() / k - row_.keys.front() / k + 1;
  } else {
    std::int32_t last = -1;
    for (std::int32_t key : row_.keys)
      if (key / k != last) last = key / k, ++count;
  }
  return arith_.tile_n > 0 && arith_.tile_n % k == 0 ? count : std::min(static_cast<double>(n_), 2 * count);
}

ValueAccumulation RowBudget::value_accumulation() const {
  const auto n = static_cast<double>(n_);
  const Format operands = value_operand(params_, arith_);
  ValueAccumulation value;
  if (arith_.promote_n > 0) {
    // A chain inside each group from zero, then one addition per group.
    const double groups = blocks(arith_.promote_n), in_group = std::min(n, static_cast<double>(arith_.promote_n));
    const auto in_blocks = [&](int k) {
      return std::min(blocks(k), pieces(arith_.promote_n, k) + (arith_.promote_n % k == 0 ? 0 : 1));
    };
    value.chain = accumulation_error(arith_.pv, operands, in_group, in_blocks);
    value.chain.absolute *= groups, value.chain.alignments *= groups;
    value.added += gamma32(groups) * (1 + value.chain.relative);
  } else {
    value.chain = accumulation_error(arith_.pv, operands, n, [&](int k) { return blocks(k); });
  }
  // O = (l alpha O + beta P V) / l_new: four roundings of each part, three of the sum.
  if (every_step()) value.added += 7 * kU32 * tiles();
  // Factors per block of keys multiply P, or the partial P V of the block, which is then added.
  if (row_.value_factor.size() > 1) value.added += gamma32(2 + pieces(row_.operands->keys, params_.scale_block));
  return value;
}

RowBudget::Channels RowBudget::cheap_channels() {
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  Channels ch{row_.abs_p, std::vector<double>(dv), row_.operands->v_abs_sum, std::vector<double>(dv),
              std::vector<double>(dv)};
  const double eta = subnormal_p(weight_, floor_scale_ / factor_low_) / row_.denominator;
  if (eta * static_cast<double>(n_) > 0x1p-60 && !row_.described)
    needs_keys_ = true;
  else if (eta * static_cast<double>(n_) > 0x1p-60)
    ch.lost = lost_weight(row_.p.data(), n_,
                          info(weight_.format).min_normal * floor_scale_ / factor_low_ / row_.denominator, eta);
  else
    ch.lost = eta * static_cast<double>(n_);
  for (std::size_t c = 0; c < dv; ++c) {
    const double o = std::abs(row_.o[c]), v_max = row_.operands->v_max[c];
    ch.hull[c] = v_max + o;
    // sum p psi |v - o| <= at sum p |v - o| + sum p (psi - at)+ |v - o|, or by Cauchy-Schwarz with sum p (v - o)^2 <=
    // sum p v^2.
    double weight = std::sqrt(psi_square_ * v_max * ch.abs_p[c]) * (1 + 0x1p-40);
    for (const Cut& cut : cuts_) {
      const double split = cut.at * (ch.abs_p[c] + o) + cut.excess * ch.hull[c];
      weight = split < weight ? split : weight;
    }
    ch.weight[c] = weight >= 0 ? weight : kInf;
    ch.floors[c] = std::min(ch.lost * v_max, eta * ch.abs_all[c]);
  }
  return ch;
}

/// The sums themselves, where the majorants are not negligible.
RowBudget::Channels RowBudget::exact_channels(Channels ch) const {
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  const std::vector<double> zero(dv, 0.0);
  ch.weight = deviations(psi_p_, row_.o);
  const double unit = floor_scale_ / row_.denominator;
  bool flushes = false, loses = false;
  for (std::size_t c = 0; c < dv; ++c) {
    flushes = flushes || kMinNormal32 * unit * ch.abs_all[c] > kNegligible * ch.abs_p[c];
    loses = loses || ch.floors[c] > kNegligible * ch.abs_p[c];
  }
  if (flushes) ch.abs_all = deviations(std::vector<double>(n_, 1.0), zero);
  if (loses) {
    const double eta = subnormal_p(weight_, floor_scale_ / factor_low_) / row_.denominator;
    const double minimum = info(weight_.format).min_normal * floor_scale_ / factor_low_ / row_.denominator;
    std::vector<double> floor(n_);
    for (std::size_t j = 0; j < n_; ++j) floor[j] = row_.p[j] < minimum ? std::min(row_.p[j], eta) : 0;
    ch.floors = deviations(floor, zero);
  }
  return ch;
}

/// The largest |v - o| over the row's keys, per channel.
std::vector<double> RowBudget::hulls() const {
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  std::vector<double> hull(dv, 0.0);
  for (std::size_t j = 0; j < n_; ++j) {
    const double* v = row_.operands->v.data() + static_cast<std::size_t>(row_.keys[j]) * dv;
    for (std::size_t c = 0; c < dv; ++c) hull[c] = std::max(hull[c], std::abs(value_factor(j) * v[c] - row_.o[c]));
  }
  return hull;
}

/// Appends tau per channel; false, having appended some, if the majorants should be refined first.
bool RowBudget::output(const Channels& ch, bool may_refine, RowBound& bound) {
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  const auto n = static_cast<double>(n_);
  const double u_p = weight_.unit_roundoff;
  const double unit = floor_scale_ / row_.denominator;  // of a product in the kernel's own unit
  // Weights below fp32's normal range may be flushed by the exponential, by P's rounding of them, or by a rescaling.
  const double flush_floor = 2 * kMinNormal32 * unit;
  const ValueAccumulation pv = value_accumulation();
  const FormatInfo& operand = info(value_operand(params_, arith_));
  // An 8-bit accumulator keeps 13 bits, and is cut back to them after a rescaling in fp32.
  const bool cut_back = operand.storage_bits == 8 && arith_.promote_n == 0 && arith_.pv != Accumulate::kFp32;
  const double rescaling = rescales_ * (kU32 + (cut_back ? 0x1p-12 : 0.0));
  const double pv_relative = pv.chain.relative + pv.added;
  const double normalize = normalize_error(params_, arith_);
  const double flushed_v =
      arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * factor_high_ * (1 + n / row_.denominator);
  const double merged = arith_.splits > 0 ? arith_.splits : std::min(n, 1024.0);
  const double merge_roundings = gamma32(merged + 2);
  const double sum_floor = arith_.row_sum_of == RowSumOf::kUnroundedP ? 0 : u_p + ch.lost;
  const double psi = psi_keys_ + psi_sink_;
  const double lost = 1 - psi, kept = 1 - sum_error_;
  const double g = (1 + normalize) / kept, inflate = g / lost;
  const bool known =
      std::all_of(row_.o_radius.begin(), row_.o_radius.end(), [](double r) { return r < kInf; }) && row_.psi64 < 0.5;
  const double slack = kSlack * (1 + row_.psi64);
  if (may_refine && (!known || !(lost > 0.5))) return false;
  const Sources by_source = shares_ != nullptr ? sources() : Sources{};
  for (std::size_t c = 0; c < dv; ++c) {
    double o = std::abs(row_.o[c]) + row_.o_radius[c], hull = ch.hull[c];
    const double v_max = row_.operands->v_max[c];
    if (!known) {
      // fp64 lost the weights: o is still a convex combination, of which hull holds the spread.
      double low = has_sink() ? 0.0 : kInf, high = has_sink() ? 0.0 : -kInf;
      o = 0;
      for (std::size_t j = 0; j < n_; ++j) {
        const double v = value_factor(j) * row_.operands->v[static_cast<std::size_t>(row_.keys[j]) * dv + c];
        low = std::min(low, v), high = std::max(high, v), o = std::max(o, std::abs(v));
      }
      hull = high - low;
    } else if (has_sink()) {
      hull = std::max(hull, o);
    }
    const double w = known ? ch.weight[c] + psi_sink_ * o + psi * row_.o_radius[c] : kInf;
    const double p_term = u_p * (ch.abs_p[c] + ch.weight[c] + psi * o) + sum_floor * o;
    const double floors = ch.floors[c] + flush_floor * ch.abs_all[c];
    const double pv_term = (1 + 2 * u_p) * ((pv_relative + rescaling) * ch.abs_p[c]);
    const double pv_floor =
        (1 + 2 * u_p) *
        ((pv.chain.absolute + rescales_ * kMinSubnormal32) * unit * factor_high_ +
         operand.min_normal * (pv.chain.alignment * factor_high_ +
                               pv.chain.alignments * unit * (v_max + operand.min_normal * factor_high_)));
    double tau = (w + p_term + floors + pv_term + pv_floor) * inflate + o * (g - 1);
    const double merge = split() ? kU32 * ch.abs_p[c] + merge_roundings * (ch.abs_p[c] + o) : 0.0;
    const double tiny =
        flushed_v + ((split() ? merged : 0) + 4) * kMinSubnormal32;  // each split's product may be subnormal
    tau = (tau + merge) * slack + tiny;
    if (may_refine) {
      // How much of tau an exact pass may save: what sum p psi |v - o| is not expected to be, and the floors.
      const double expected = psi * std::max(0.0, ch.abs_p[c] - o);
      if (!(tau < kInf) || !((w - expected + floors) * inflate <= kRefine * tau)) return false;
    }
    // Whatever the weights, o^ is a convex combination of the admissible v (and 0 with a sink), up to rounding.
    const double largest = hull + o;  // >= every |v|
    const double convex = (hull +
                           (u_p + sum_floor + sum_error_ + normalize + pv_relative + rescaling + 4 * kU32 +
                            (split() ? merge_roundings : 0.0)) *
                               largest * 2 +
                           floors + pv_floor) *
                              slack +
                          tiny;
    bool from_hull = !(w < kInf);
    if (!(lost > 0) || !(kept > 0) || !(tau >= 0)) tau = kInf;
    if (convex < tau && kept > 0.5) tau = convex, from_hull = true;
    bound.o_tau.push_back(tau);
    if (shares_ == nullptr) continue;
    const double weights = w * inflate * slack;
    shares_->qk.push_back(from_hull ? 0 : weights * by_source.qk);
    shares_->exp.push_back(from_hull ? 0 : weights * by_source.exp);
    shares_->p.push_back(from_hull ? 0 : (p_term + ch.floors[c]) * inflate * slack);
    shares_->pv.push_back(from_hull ? 0 : (pv_term + pv_floor) * inflate * slack);
    shares_->merge.push_back(from_hull ? 0 : weights * by_source.merge + merge * slack);
    shares_->normalise.push_back(from_hull ? 0 : o * (g - 1) * slack);
    shares_->subnormals.push_back(from_hull ? 0 : flush_floor * ch.abs_all[c] * inflate * slack + tiny);
    shares_->hull.push_back(from_hull ? tau : 0);
  }
  return true;
}

void RowBudget::outputs(RowBound& bound) {
  Channels channels = cheap_channels();
  if (needs_keys_ || output(channels, true, bound)) return;
  needs_keys_ = !row_.described;
  if (needs_keys_) return;
  bound.o_tau.clear();
  if (shares_ != nullptr) *shares_ = {};
  channels = exact_channels(std::move(channels));
  if (!(psi_keys_ + psi_sink_ < 0.5)) channels.hull = hulls();
  output(channels, false, bound);
}

}  // namespace assay
