// The bound T0 of attention for one declared arithmetic, row by row (numerics.md 2.2 to 2.7, corrected by 2.14).
//
// Natural-log units; u = 2^-24; D_j = x_max - x_j; A_j = sum |q_c k_jc|. Every undeclared field takes the worst member of its
// enum. Weight of key j after all rescalings: kappa w_j e^eta_j with one common kappa and |eta_j| <= eps_j,
//
//   eps_j = |scale| ds_j                               ds_j: accumulation of QK^T, storage of S, flushed operands
//         + [scale on score] u |scale s_j| + [bias] u |x_j|
//         + 2u D_j                                     c^ = fl(scale log2 e) against c; the reference is x_max
//         +  u D_j                                     rounding of y = fma(s, c^, -fl(m c^)) (or of y log2 e)
//         + [running maximum] (u (max(|x_j|, |x_max|) + |x_max|) + 2u D_j)      fl(M_t c^) telescopes; exponents of alpha
//         + (1 + n_t) eps_ex2                          n_t: how often the maximum may still rise after j's tile
//
// M_t lies between x_j and x_max, hence the third line without knowing the tiles. Then, with psi_j = e^eps_j - 1 and Psi =
// sum p_j psi_j < 1, o^ differs from o by no more than
//
//   W   = sum p_j psi_j |v_j - o| / (1 - Psi)
//   R_P = [u_P sum p_j (1 + psi_j) |v_j| + (eta_P / L) sum |v_j|] / (1 - Psi)          P rounded before P V
//   R_A = (1 + 2 u_P) [E_pv + R u sum p_j |v_j|] / (1 - Psi)                           accumulation and R rescalings of O
//   tau = (W + R_P + R_A) g + |o| (g - 1),   g = (1 + u_n) / (1 - s_l)                 row sum and normalisation
//
// Merge of splits (any partition: Jensen turns sum_s pi_s d_s |o_s - o| into a sum over keys, since lse_s >= x_j for every key
// j of split s): each split obeys the bound above about its own o_s, |v_j - o_s| <= |v_j - o| + |o_s - o|, and a split whose
// Psi_s exceeds 1/2 is off by at most its hull, so W becomes 2 W + 4 Psi H with H = max |v_j - o|; merging adds
//   sum p_j d_j |v_j - o| + u sum p_j |v_j| + gamma_{S+2} (sum p_j |v_j| + |o|),
//   d_j = s_l + eps_log + 3u |x| + 2u |lse_s| + 3.2u |lse_s - lse_max| + eps_exp   with |lse_s| <= max(|x_j|, |x_max|) + ln n.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/ops/attention/analysis.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep0;
constexpr double kEx2Approx = 2.5 * 0x1p-23;  // 2 ulp from the correctly rounded result
constexpr double kPolynomial3 = 9e-5;         // its published coefficients give 8.8e-5
constexpr double kLg2 = 0x1p-22;          // lg2.approx: absolute in (0.5, 2), relative elsewhere
constexpr double kSlack = 1 + 0x1p-8;     // products of two first-order terms, and fp64 rounding of the bound itself

/// e^x - 1 from above for x >= 0.
double expm1_upper(double x) { return x <= 1 ? x + x * x : exp64(x); }

ASSAY_HOT void add_key(double p, double psi_p, double merge_p, const double* v, const double* o, std::size_t n,
                       double* abs_p, double* weight, double* merge, double* abs_all, double* hull) {
  for (std::size_t c = 0; c < n; ++c) {
    const double magnitude = std::abs(v[c]), deviation = std::abs(v[c] - o[c]);
    abs_p[c] += p * magnitude;
    weight[c] += psi_p * deviation;
    merge[c] += merge_p * deviation;
    abs_all[c] += magnitude;
    hull[c] = deviation > hull[c] ? deviation : hull[c];
  }
}

class RowBudget {
 public:
  RowBudget(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic)
      : row_(row),
        params_(params),
        arith_(arithmetic),
        n_(row.keys.size()),
        ex2_(arithmetic.exponential == Exponential::kEx2Approx ? kEx2Approx : kPolynomial3) {}

  RowBound bound();

 private:
  bool has_bias() const { return params_.data_mask == DataMask::kAdditive && !row_.uniform; }
  bool running() const { return arith_.max_policy != MaxPolicy::kGlobal && n_ > 1 && !single_tile(); }
  bool single_tile() const {
    return arith_.tile_n > 0 && arith_.splits == 1 && row_.keys.front() / arith_.tile_n == row_.keys.back() / arith_.tile_n;
  }
  bool split() const { return arith_.splits != 1; }
  double blocks(int k) const;
  double row_sum_chain() const;
  void logit_errors();
  void count_records();
  void range(RowBound& bound) const;
  void output(RowBound& bound) const;
  double lse_bound() const;
  double excess_weight(std::size_t j, double eps) const;
  double merge_error(std::size_t j) const;
  double value(std::int32_t key, std::size_t channel) const {
    return row_.operands->v[static_cast<std::size_t>(key * row_.operands->dim_v) + channel];
  }
  double width(std::size_t channel) const;      ///< largest minus smallest admissible v
  double largest_v(std::size_t channel) const;  ///< largest admissible |v|

  const RowAnalysis& row_;
  const AttentionParams& params_;
  const Arithmetic& arith_;
  std::size_t n_;
  double ex2_;                       ///< eps_ex2, relative error of one exponential
  std::vector<double> score_error_;  ///< |scale| ds_j
  std::vector<double> eps_;          ///< eps_j without the exponentials of later rescalings
  std::vector<double> psi_p_;        ///< p_j psi_j
  double ln_n_ = 0;
  double psi_sum_ = 0;
  double rescales_ = 0;              ///< R: how often O and l may be rescaled
  double largest_max_ = 0;           ///< largest |M_t| that may be subtracted
  double sum_error_ = 0;             ///< s_l
  double shift_ = 0;                 ///< residual exponent (log2) that P of the maximum may carry
};

/// Blocks of k consecutive keys that hold an admissible one. Tiles start at multiples of 16 in every kernel with declared
/// tiles; with unknown tiles a block may straddle two of ours.
double RowBudget::blocks(int k) const {
  double count = 0;
  std::int32_t last = -1;
  for (std::int32_t key : row_.keys)
    if (key / k != last) last = key / k, ++count;
  return arith_.tile_n % k == 0 && arith_.tile_n > 0 ? count : std::min(static_cast<double>(n_), 2 * count);
}

/// Longest chain of additions of the row sum.
double RowBudget::row_sum_chain() const {
  if (arith_.row_sum_tree != RowSumTree::kQuad) return static_cast<double>(n_);
  std::array<double, 4> lanes{};
  for (std::int32_t key : row_.keys) ++lanes[static_cast<std::size_t>(key % 8 / 2)];
  return *std::max_element(lanes.begin(), lanes.end()) + 2;
}

void RowBudget::logit_errors() {
  const auto d = static_cast<double>(params_.dim_qk);
  AccumulationError qk = accumulation_error(arith_.qk, d, [&](int k) {
    return static_cast<double>((params_.dim_qk + k - 1) / k);
  });
  const double scale = std::abs(row_.scale);
  const bool folded_only = arith_.scale_form == ScaleForm::kFolded;
  double store = 0;
  if (arith_.score_store == ScoreStore::kBf16) store = 0x1p-8;
  if (arith_.score_store == ScoreStore::kFp16) store = 0x1p-11;
  if (arith_.score_store == ScoreStore::kUnknown) store = info(params_.input).unit_roundoff;
  // A flushed operand is below 2^-126, so each term it loses is below 2^-126 times its partner; a flushed product, below 2^-126.
  const double flushed = arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * d * (1 + row_.operand_max);
  score_error_.resize(n_);
  eps_.resize(n_);
  const double x_max = std::abs(row_.max_logit);
  for (std::size_t j = 0; j < n_; ++j) {
    const double ds = qk.relative * row_.magnitude[j] + qk.absolute + store * std::abs(row_.score[j]) +
                      std::min(flushed, row_.magnitude[j]);
    const double x = row_.scale * row_.score[j] + row_.bias[j], depth = row_.depth[j];
    double eps = scale * ds + 3 * kU32 * depth;
    if (!folded_only || has_bias()) eps += kU32 * std::abs(row_.scale * row_.score[j]);
    if (has_bias()) eps += kU32 * std::abs(x);
    if (running()) eps += kU32 * (std::max(std::abs(x), x_max) + x_max + 2 * depth);
    score_error_[j] = row_.uniform ? 0 : scale * ds;
    eps_[j] = (row_.uniform ? 0 : eps * kSlack) + ex2_;
  }
}

/// How often the running maximum may rise, and how large the maxima on the way may be.
void RowBudget::count_records() {
  largest_max_ = std::abs(row_.max_logit);
  rescales_ = 0;
  if (!running()) return;
  const bool tiles_known = arith_.tile_n > 0 && arith_.tile_order != TileOrder::kUnknown;
  const auto walk = [&](bool forward, std::int32_t tile) {
    double low = -kInf, records = 0, largest = 0;  // low: the maximum so far is certainly at least this
    for (std::size_t i = 0; i < n_;) {
      const auto at = [&](std::size_t step) { return forward ? step : n_ - 1 - step; };
      const std::int32_t id = row_.keys[at(i)] / tile;
      double high = -kInf, tile_low = -kInf;
      for (; i < n_ && row_.keys[at(i)] / tile == id; ++i) {
        const std::size_t j = at(i);
        const double x = row_.max_logit - row_.depth[j];
        high = std::max(high, x + score_error_[j]);
        tile_low = std::max(tile_low, x - score_error_[j]);
      }
      if (high >= low) {
        ++records;
        largest = std::max({largest, std::abs(high), std::abs(tile_low)});
      }
      low = std::max(low, tile_low);
    }
    rescales_ = std::max(rescales_, records - 1);
    largest_max_ = std::max(largest_max_, largest);
  };
  if (!tiles_known || arith_.tile_order == TileOrder::kForward) walk(true, tiles_known ? arith_.tile_n : 1);
  if (!tiles_known || arith_.tile_order == TileOrder::kBackward) walk(false, tiles_known ? arith_.tile_n : 1);
}

/// Hulls of the declared intermediates (numerics.md 2.14, "Range").
void RowBudget::range(RowBound& bound) const {
  const auto outside = [&](std::string_view what, double value, double limit) {
    if (bound.out_of_range.empty()) bound.out_of_range = fmt::format("{}: {:.6g} > {:.6g}", what, value, limit);
  };
  const double score_limit = arith_.score_store == ScoreStore::kFp16 ? info(Format::kFp16).max_finite : kMax32;
  if (!(row_.score_hull * kSlack <= score_limit)) return outside("S", row_.score_hull, score_limit);
  // c^ = fl32(scale log2 e) and rcp(l), o below must be normal numbers to keep their relative error.
  const double c = std::abs(row_.scale) * kLog2E;
  if (c > kMax32) return outside("scale log2 e", c, kMax32);
  if (c > 0 && c < kMinNormal32) return outside("1 / (scale log2 e)", 1 / c, 1 / kMinNormal32);
  const double largest_logit = largest_max_ * kLog2E;
  if (!(largest_logit * kSlack <= kMax32)) return outside("s c", largest_logit, kMax32);
  const Format p_format = arith_.p_known ? arith_.p_format : params_.input;
  const double p_limit = p_format == Format::kFp16 ? 14.0 : 126.0;  // 2^-14: smallest normal; 2^16 overflows
  if (!(shift_ <= p_limit)) return outside("P, residual exponent of the maximum", shift_, p_limit);
  const double l_limit = 0x1p126;
  const double l = static_cast<double>(n_) * exp2_64(shift_);
  if (!(l <= l_limit)) return outside("l", l, l_limit);
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  std::vector<double> sums(dv);
  for (std::int32_t key : row_.keys)
    for (std::size_t ch = 0; ch < dv; ++ch)
      sums[ch] += std::abs(row_.operands->v[static_cast<std::size_t>(key) * dv + ch]);
  const double hull = *std::max_element(sums.begin(), sums.end()) * exp2_64(shift_) * kSlack;
  if (!(hull <= kMax32)) return outside("O accumulator", hull, kMax32);
  if (!(sum_error_ < 0.5)) return outside("row sum, relative error", sum_error_, 0.5);
}

/// p_j (e^eps - 1) from above; from D_j directly where eps is large, so that a huge eps on a key of no weight gives no 0 * inf.
double RowBudget::excess_weight(std::size_t j, double eps) const {
  return eps <= 0.5 ? row_.p[j] * expm1_upper(eps) : exp64(std::min(eps - row_.depth[j], 700.0)) / row_.sum * kSlack;
}

double RowBudget::merge_error(std::size_t j) const {
  const double reach = std::max(std::abs(row_.max_logit - row_.depth[j]), std::abs(row_.max_logit)) + ln_n_;
  return sum_error_ + kLg2 * std::max(kLn2, ln_n_) + 5 * kU32 * reach + 3.2 * kU32 * (row_.depth[j] + ln_n_) + ex2_;
}

double RowBudget::width(std::size_t channel) const {
  double low = kInf, high = -kInf;
  for (std::int32_t key : row_.keys) {
    const double v = value(key, channel);
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return high - low;
}

double RowBudget::largest_v(std::size_t channel) const {
  double largest = 0;
  for (std::int32_t key : row_.keys) largest = std::max(largest, std::abs(value(key, channel)));
  return largest;
}

void RowBudget::output(RowBound& bound) const {
  const auto dv = static_cast<std::size_t>(row_.operands->dim_v);
  std::vector<double> abs_p(dv), weight(dv), merge(dv), abs_all(dv), hull(dv);
  for (std::size_t j = 0; j < n_; ++j) {
    const double* v = row_.operands->v.data() + static_cast<std::size_t>(row_.keys[j]) * dv;
    add_key(row_.p[j], psi_p_[j], split() ? row_.p[j] * merge_error(j) : 0.0, v, row_.o.data(), dv, abs_p.data(),
            weight.data(), merge.data(), abs_all.data(), hull.data());
  }
  const auto n = static_cast<double>(n_);
  const Format p_format = arith_.p_known ? arith_.p_format : params_.input;
  const double u_p = p_format == Format::kFp32 ? 0.0 : info(p_format).unit_roundoff;
  const double eta_p = (p_format == Format::kFp32 ? 0.0 : info(p_format).min_subnormal / 2) * exp2_64(shift_);
  // Weights below fp32's normal range may be flushed by the exponential, by P's rounding of them, or by a rescaling.
  const double flush_floor = 2 * kMinNormal32 * exp2_64(shift_);
  const AccumulationError pv = accumulation_error(arith_.pv, n, [&](int k) { return blocks(k); });
  double normalize = 6 * kU32;
  if (arith_.normalize == Normalize::kReciprocal) normalize = 3 * kU32;
  if (arith_.normalize == Normalize::kDivide) normalize = 2 * kU32;
  const double flushed_v = arith_.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * (1 + n / row_.sum);
  const double merge_roundings = gamma32(arith_.splits > 0 ? arith_.splits + 2.0 : std::min(n, 1024.0) + 2);
  const double lost = 1 - psi_sum_, kept = 1 - sum_error_;
  const double g = (1 + normalize) / kept;
  const bool known = std::all_of(row_.o_radius.begin(), row_.o_radius.end(), [](double r) { return r < kInf; });
  for (std::size_t c = 0; c < dv; ++c) {
    if (!known) hull[c] = width(c);  // fp64 lost the weights: o is still a convex combination, of which hull holds the spread
    const double o = known ? std::abs(row_.o[c]) + row_.o_radius[c] : largest_v(c);
    double w = known ? weight[c] + psi_sum_ * row_.o_radius[c] : kInf;
    if (split()) w = 2 * w + 4 * psi_sum_ * hull[c];
    double rounding = u_p * (abs_p[c] + weight[c] + psi_sum_ * o) + (eta_p + flush_floor) / row_.sum * abs_all[c];
    if (arith_.row_sum_of != RowSumOf::kUnroundedP) rounding += u_p * o;
    const double accumulation = (1 + 2 * u_p) * (pv.relative * abs_p[c] + pv.absolute / row_.sum * exp2_64(shift_) +
                                                 rescales_ * (kU32 * abs_p[c] + kMinSubnormal32));
    double tau = (w + rounding + accumulation) / lost * g + o * (g - 1);
    if (split()) tau += merge[c] + kU32 * abs_p[c] + merge_roundings * (abs_p[c] + o);
    tau = tau * kSlack + flushed_v + 4 * kMinSubnormal32;
    // Whatever the weights, o^ is a convex combination of the admissible v, up to rounding.
    const double v_max = hull[c] + o;  // >= every |v|
    const double convex = (hull[c] + (u_p + sum_error_ + normalize + pv.relative + rescales_ * kU32 + 4 * kU32 +
                                      (split() ? merge_roundings : 0.0)) * v_max * 2 +
                           (eta_p + flush_floor + pv.absolute) * abs_all[c]) * kSlack + flushed_v + 4 * kMinSubnormal32;
    if (!(lost > 0) || !(kept > 0)) tau = kInf;
    if (!(lost > 0.5) || !known) tau = kept > 0.5 ? std::min(tau, convex) : kInf;
    bound.o_tau.push_back(tau >= 0 ? tau : kInf);
  }
}

/// (L) with every tile paying u |M_t| and the corrections 2u |ln l|, and the merge of partial LSEs.
double RowBudget::lse_bound() const {
  const double x_max = std::abs(row_.max_logit), ln_l = log64(row_.sum);
  // max x <= lse <= max x + ln n holds without fp64's weights.
  const double lse = std::min(std::abs(row_.lse) + row_.lse_radius,
                              x_max + ln_n_ + *std::max_element(score_error_.begin(), score_error_.end()));
  const auto eps = [&](std::size_t j) { return eps_[j] + rescales_ * ex2_ + 1.01 * kU32 * largest_max_; };
  double merge = 0, top = -kInf, sum = 0;
  for (std::size_t j = 0; j < n_; ++j) {
    top = std::max(top, eps(j) - row_.depth[j]);
    if (split()) merge += row_.p[j] * merge_error(j);
  }
  // ln sum p_j e^eps_j: as ln(1 + sum p_j (e^eps_j - 1)) while that is small, else with the largest term taken out.
  for (std::size_t j = 0; j < n_; ++j) sum += top < 0.5 ? excess_weight(j, eps(j)) : exp64(eps(j) - row_.depth[j] - top);
  const double weights = top < 0.5 ? log64(1 + sum) : top + log64(sum) - ln_l;
  double tau = weights + sum_error_ / (1 - sum_error_) + kLg2 * std::max(kLn2, ln_l + sum_error_) +
               3 * kU32 * x_max + kU32 * lse + 2 * kU32 * ln_l;
  if (arith_.row_sum_of != RowSumOf::kUnroundedP) {
    const Format p_format = arith_.p_known ? arith_.p_format : params_.input;
    tau += p_format == Format::kFp32 ? 0.0 : 2 * info(p_format).unit_roundoff;
  }
  if (split()) tau += merge + kLg2 * std::max(kLn2, ln_n_) + 4 * kU32 * (lse + x_max);
  tau = tau * kSlack + 4 * kMinSubnormal32;
  if (params_.lse == LseBase::kTwo) tau = (tau + 4 * kU32 * lse) / kLn2;
  return tau >= 0 ? tau : kInf;
}

RowBound RowBudget::bound() {
  RowBound bound;
  ln_n_ = log64(static_cast<double>(n_));
  logit_errors();
  count_records();
  // b_t = fl(M_t c^) is off by up to half an ulp, u |M_t c^|: that is the exponent P of the maximum may carry. A bias can
  // join the folded form too, so only a global maximum subtracted from the scaled score is free of it.
  const bool subtracts_first = arith_.max_policy == MaxPolicy::kGlobal && arith_.scale_form == ScaleForm::kOnScore;
  shift_ = row_.uniform || subtracts_first ? 0 : kU32 * largest_max_ * kLog2E * kSlack;
  const double chain = row_sum_chain();
  sum_error_ = gamma32(chain + rescales_ + 2) + static_cast<double>(n_) * kMinNormal32 / row_.sum;
  range(bound);
  if (!bound.out_of_range.empty()) {
    bound.o_tau.assign(static_cast<std::size_t>(row_.operands->dim_v), kInf);
    bound.lse_tau = kInf;
    return bound;
  }
  psi_p_.resize(n_);
  for (std::size_t j = 0; j < n_; ++j) {
    const double eps = eps_[j] + rescales_ * ex2_;
    psi_p_[j] = excess_weight(j, eps);
    psi_sum_ += psi_p_[j];
  }
  output(bound);
  bound.lse_tau = lse_bound();
  const bool narrow = (arith_.p_known ? arith_.p_format : params_.input) == Format::kFp16;
  bound.infinite_v_depth = (narrow ? 13.0 : 120.0) * kLn2;
  return bound;
}

}  // namespace

RowBound bound_row(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic) {
  return RowBudget(row, params, arithmetic).bound();
}

std::vector<std::string> bound_assumptions(const Arithmetic& a) {
  std::vector<std::string> all{
      "T0: no legal arithmetic of the declared formats and enums gives a rejected value; order of accumulation is free",
      a.exponential == Exponential::kEx2Approx ? "exp2 is within 2 ulp of the correctly rounded result; exp2(0) = 1"
                                               : "exp2 is within 9e-5 of the exact value (a degree-3 polynomial or better); exp2(0) = 1",
      "log2 is within 2^-22, the reciprocal within 1 ulp of the correctly rounded result"};
  if (a.qk == Accumulate::kBlockHopper || a.pv == Accumulate::kBlockHopper)
    all.emplace_back("tensor-core accumulation follows the block-FMA model of Hopper (K = 16, F = 25, truncation)");
  if (a == Arithmetic{})
    all.emplace_back("nothing is declared: the bound is the union over the family: accumulation in fp32, or block FMA of Ampere "
                     "or Hopper; S and P in fp32 or the input format; scale folded or on the score; any tiles, order and splits; "
                     "l of rounded or unrounded P in any order; subnormals kept or flushed");
  return all;
}

}  // namespace assay
