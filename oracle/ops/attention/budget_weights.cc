// Errors of the log-weights eps_j, and their sums over the keys of a row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/ops/attention/lanes.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kSmall = 0.25;  // up to here all keys go through flat loops

/// e^x - 1 from above for 0 <= x <= 1: the series' rest beyond x^2 / 2 is below x^3 / 4.
[[gnu::always_inline]] inline double excess(double x) { return x * (1 + x * (0.5 + 0.25 * x)); }

/// eps_j from its coefficients and the largest; y may be null.
ASSAY_HOT double weigh(std::size_t n, const double* magnitude, const double* depth, const double* y, double a, double b,
                       double s, double c, double* eps) {
  double largest[kLanes] = {};
  if (y != nullptr)
    for_lanes(n, [&](std::size_t l, std::size_t j) {
      eps[j] = a * magnitude[j] + b * depth[j] + c + s * std::abs(y[j]);
      largest[l] = eps[j] > largest[l] ? eps[j] : largest[l];
    });
  else
    for_lanes(n, [&](std::size_t l, std::size_t j) {
      eps[j] = a * magnitude[j] + b * depth[j] + c;
      largest[l] = eps[j] > largest[l] ? eps[j] : largest[l];
    });
  return lane_max(largest);
}

struct PsiSums {
  double psi, square;
};

/// factor p_j psi_j, and the sums of p psi and p psi^2 with the factor's powers.
ASSAY_HOT PsiSums spread(std::size_t n, const double* p, const double* eps, double factor, double* psi_p) {
  double psi[kLanes] = {}, square[kLanes] = {};
  for_lanes(n, [&](std::size_t l, std::size_t j) {
    const double error = factor * excess(eps[j]);
    psi_p[j] = p[j] * error;
    psi[l] += psi_p[j];
    square[l] += psi_p[j] * error;
  });
  return {lane_sum(psi), lane_sum(square)};
}

/// sum max(psi_p_j - at_k p_j, 0) for three thresholds.
ASSAY_HOT void cut(std::size_t n, const double* p, const double* psi_p, const double* at, double* excess) {
  double first[kLanes] = {}, second[kLanes] = {}, third[kLanes] = {};
  for_lanes(n, [&](std::size_t l, std::size_t j) {
    const double x = psi_p[j] - at[0] * p[j], y = psi_p[j] - at[1] * p[j], z = psi_p[j] - at[2] * p[j];
    first[l] += x > 0 ? x : 0.0;
    second[l] += y > 0 ? y : 0.0;
    third[l] += z > 0 ? z : 0.0;
  });
  excess[0] = lane_sum(first), excess[1] = lane_sum(second), excess[2] = lane_sum(third);
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

}  // namespace

LogError& LogError::operator+=(const LogError& other) {
  magnitude += other.magnitude;
  linear += other.linear;
  capped += other.capped;
  depth += other.depth;
  constant += other.constant;
  return *this;
}

/// The coefficients (budget.cc). Everything that is a constant of the row or proportional to A_j, |y_j| or D_j.
void RowBudget::log_errors() {
  errors_ = {};
  const double factor = largest_of(row_.factor);
  magnitude_ = row_.magnitude.data();
  magnitude_factor_ = factor;
  if (row_.factor.size() > 1 && !row_.uniform) {
    scaled_.resize(n_);
    for (std::size_t j = 0; j < n_; ++j) scaled_[j] = std::abs(row_.factor[j]) * row_.magnitude[j];
    magnitude_ = scaled_.data();
    magnitude_factor_ = 1;
  }
  above_ = has_sink() ? std::max(0.0, row_.sink - row_.max_logit) : 0;
  top_ = std::max(std::abs(row_.max_logit), has_sink() ? std::abs(row_.sink) : 0.0);
  errors_.exp.constant = ex2_ * (own_tile() && running() ? 2 : 1);
  if (row_.uniform) return;

  const auto d = static_cast<double>(params_.dim_qk);
  const AccumulationError qk = accumulation_error(
      arith_.qk, params_.input, d, [&](int k) { return static_cast<double>((params_.dim_qk + k - 1) / k); });
  const double raised = info(params_.input).min_normal;  // a subnormal operand is aligned like this
  errors_.accumulation.magnitude = qk.relative;
  errors_.accumulation.constant = factor * (qk.absolute + qk.alignments * raised * (row_.operand_max + raised));
  if (arith_.score_store == ScoreStore::kBf16) errors_.qk.linear = 0x1p-8;
  if (arith_.score_store == ScoreStore::kFp16) errors_.qk.linear = 0x1p-11;
  if (arith_.score_store == ScoreStore::kUnknown)
    errors_.qk.linear =
        std::max(info(params_.input).storage_bits == 8 ? 0x1p-8 : 0.0, info(params_.input).unit_roundoff);
  if (arith_.score_store == ScoreStore::kFp16 ||
      (arith_.score_store == ScoreStore::kUnknown && params_.input != Format::kFp32))
    errors_.qk.constant += factor * 0x1p-25;  // fp16's subnormal scores
  if (arith_.subnormals != Subnormals::kKept) {
    // A flushed operand is below 2^-126, so each term it loses is below 2^-126 times its partner, and no larger than
    // itself.
    const double flushed = kMinNormal32 * d * (1 + row_.operand_max);
    if (flushed <= row_.score_hull)
      errors_.qk.constant += factor * flushed;
    else
      errors_.qk.magnitude += 1;
  }

  LogError& logit = errors_.logit;
  const bool capped = params_.softcap > 0, folded_only = arith_.scale_form == ScaleForm::kFolded;
  if (params_.descale != Descale::kNone) logit.magnitude += 4 * kU32;
  if (!folded_only || has_bias() || capped) logit.linear += kU32;
  if (capped) {
    logit.capped += 3 * kU32 + tanh_error(arith_.tanh) + kU32;
    logit.constant += 4 * kMinSubnormal32 * (1 + static_cast<double>(params_.softcap));
  }
  if (has_bias()) {
    // |b_j| <= |x_j| + |cap(y_j)| and |x_j| <= |x_max| + D_j.
    double sum = kU32, bias = 0;
    if (arith_.scale_form != ScaleForm::kOnScore) bias = 2 * kU32;
    if (params_.alibi != Alibi::kNone) {
      bias = 3 * kU32;
      if (params_.data_mask == DataMask::kAdditive)
        logit.constant += 4 * kU32 * row_.slope * static_cast<double>(params_.len_kv + params_.len_q);
    }
    logit.depth += sum + bias;
    logit.constant += (sum + bias) * std::abs(row_.max_logit);
    (capped ? logit.capped : logit.linear) += bias;
  }

  LogError& exp = errors_.exp;
  const double offset = weight_.offset == 0 ? 0.0 : std::abs(weight_.offset) * kLn2;
  exp.depth += 3 * kU32;
  exp.constant += 5 * kU32 * above_ + kU32 * offset;
  if (running()) {
    const double shifts = weight_.offset == 0 ? 1 : 2;
    exp.depth += (shifts + 2) * kU32;
    exp.constant += shifts * kU32 * (2 * top_ + weight_.lazy * kLn2) + 2 * kU32 * offset;
  }
  if (split()) {
    errors_.merge.depth = 8.2 * kU32;
    errors_.merge.constant =
        kLg2 * std::max(kLn2, ln_n_ + offset) + 5 * kU32 * (top_ + ln_n_) + 3.2 * kU32 * (ln_n_ + above_) + ex2_;
  }
}

/// Its constant, product or quotient; fl(M c^); the subtraction; the exponential and all later rescalings.
double RowBudget::sink_error(double rescales) const {
  return 4 * kU32 * std::abs(row_.sink) + 4 * kU32 * top_ + 5 * kU32 * std::abs(row_.sink - row_.max_logit) +
         (2 + rescales) * ex2_ + errors_.merge.constant +
         errors_.merge.depth * std::max(0.0, row_.max_logit - row_.sink);
}

const LogErrors& RowBudget::errors() {
  ln_n_ = log64(static_cast<double>(n_));
  log_errors();
  return errors_;
}

/// p_j (e^eps - 1) from above; from D_j directly where eps is large, so that a huge eps on a key of no weight gives no
/// 0 * inf.
double RowBudget::excess_weight(std::size_t j, double eps) const {
  return eps <= kSmall ? row_.p[j] * (1 + row_.psi64) * excess(eps)
                       : exp64(std::min(eps - row_.depth[j], 700.0)) / row_.denominator * kSlack;
}

void RowBudget::weigh_sink() {
  sink_error_ = 0;
  if (has_sink()) {
    sink_error_ = sink_error(rescales_);
    psi_sink_ = sink_error_ <= kSmall ? row_.sink_p * (1 + row_.psi64) * excess(sink_error_)
                                      : exp64(std::min(sink_error_ - std::max(0.0, row_.max_logit - row_.sink), 700.0));
    psi_sink_ *= kSlack;
  }
}

/// For keys alike: y = x, so |y_j| <= |x_max| + D_j, and eps_j is linear in A_j and D_j. Its sum over p is exact, so is that of psi but
/// for (1 + eps_max); psi exceeds the psi of D = 32 only where p is below e^-32.
void RowBudget::weigh_by_sums(const LogError& all) {
  constexpr double kCut = 32, kLost = 0x1.50p-48;  // > e^-33; see alike_weight_errors
  constexpr double kFewRoundings = 8 * kU32;       // of y; a stored S would feel that |y_j| is less than |x_max| + D_j
  const KeySums& sums = row_.sums;
  const double magnitude = all.magnitude * magnitude_factor_, depth = all.depth + all.linear,
               constant = all.constant + all.linear * std::abs(row_.max_logit);
  const auto eps = [&](double at) { return (magnitude * row_.score_hull + depth * at + constant) * kSlack; };
  eps_max_ = eps(sums.deepest);
  if (!(eps_max_ <= kSmall) || !(row_.psi64 < 0.5) || all.linear > kFewRoundings) {
    needs_keys_ = true;
    return;
  }
  weigh_sink();
  const double p = (1 - row_.sink_p) * (1 + 0x1p-40);
  psi_keys_ = (magnitude * sums.magnitude + depth * sums.depth + constant * p) * kSlack * (1 + eps_max_) * (1 + row_.psi64);
  const double at = excess(eps(std::min(sums.deepest, kCut))) * (1 + row_.psi64);
  const double lost = sums.deepest <= kCut ? 0 : static_cast<double>(n_) * kLost * depth * 1.6 / row_.denominator;
  psi_square_ = psi_keys_ * (at + lost) + lost;
  cuts_ = {};
  for (Cut& c : cuts_) c = {at, lost};
}

void RowBudget::weigh_keys() {
  LogError all = errors_.accumulation;
  all += errors_.qk;
  all += errors_.logit;
  all += errors_.exp;
  all += errors_.merge;
  all.constant += rescales_ * ex2_;
  if (!row_.described) return weigh_by_sums(all);
  eps_.resize(n_);
  psi_p_.resize(n_);
  const bool linear = !row_.uniform && (all.linear > 0 || all.capped > 0);
  const bool capped = all.capped > 0 && params_.softcap > 0;
  std::vector<double> y;
  if (linear && capped) {
    const auto cap = static_cast<double>(params_.softcap);
    y.resize(n_);
    for (std::size_t j = 0; j < n_; ++j) {
      const double magnitude = std::abs(row_.linear[j]);
      y[j] = all.linear * magnitude + all.capped * std::min(magnitude, cap);
    }
  }
  const double* linear_values = !linear ? nullptr : capped ? y.data() : row_.linear.data();
  eps_max_ = weigh(n_, magnitude_, row_.depth.data(), linear_values, all.magnitude * magnitude_factor_ * kSlack,
                   all.depth * kSlack, capped ? kSlack : all.linear * kSlack, all.constant * kSlack, eps_.data());

  weigh_sink();
  psi_keys_ = psi_square_ = 0;
  cuts_ = {};
  if (!(eps_max_ <= kSmall) || !(row_.psi64 < 0.5)) {
    for (std::size_t j = 0; j < n_; ++j) {
      psi_p_[j] = excess_weight(j, eps_[j]);
      psi_keys_ += psi_p_[j];
    }
    psi_square_ = std::numeric_limits<double>::infinity();
    for (Cut& c : cuts_) c.excess = std::numeric_limits<double>::infinity();
    return;
  }
  const PsiSums sums = spread(n_, row_.p.data(), eps_.data(), 1 + row_.psi64, psi_p_.data());
  psi_keys_ = sums.psi, psi_square_ = sums.square;
  double at[3], above[3];
  for (std::size_t k = 0; k < 3; ++k) at[k] = std::array{1.0, 1.4, 2.2}[k] * psi_keys_;
  cut(n_, row_.p.data(), psi_p_.data(), at, above);
  for (std::size_t k = 0; k < 3; ++k) cuts_[k] = {at[k], above[k]};
}

/// ln sum p_j e^eps'_j over what the LSE counts, eps' = eps + what all keys share.
double RowBudget::lse_weights() const {
  const double shared = 1.01 * kU32 * largest_max_;
  const bool with_sink = params_.sink == Sink::kInLse && has_sink();
  if (eps_max_ <= kSmall && shared <= kSmall && (!with_sink || sink_error_ <= kSmall)) {
    // e^(a + b) - 1 = e^b (e^a - 1) + (e^b - 1).
    const double share = with_sink || row_.sink_p == 0 ? 1.0 : row_.denominator / row_.sum;
    const double psi = psi_keys_ * share + (with_sink ? psi_sink_ : 0.0);
    return log64(1 + psi * (1 + 1.2 * shared) + excess(shared));
  }
  // A row that is known by its sums alone: no term's error is larger than the largest.
  if (!row_.described) return shared + std::max(eps_max_, with_sink ? sink_error_ : 0.0);
  double largest = with_sink ? sink_error_ + row_.sink - row_.max_logit : -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < n_; ++j) largest = std::max(largest, eps_[j] - row_.depth[j]);
  double sum = with_sink ? exp64(sink_error_ + row_.sink - row_.max_logit - largest) : 0;
  for (std::size_t j = 0; j < n_; ++j) sum += exp64(eps_[j] - row_.depth[j] - largest);
  return shared + largest + log64(sum) - log64(with_sink ? row_.denominator : row_.sum);
}

/// The shares of sum p_j eps_j by source; they add up to 1.
RowBudget::Sources RowBudget::sources() const {
  double magnitude = 0, linear = 0, capped = 0, depth = 0, p = 0;
  for (std::size_t j = 0; j < n_; ++j) {
    magnitude += row_.p[j] * magnitude_factor_ * magnitude_[j];
    if (!row_.uniform) linear += row_.p[j] * std::abs(row_.linear[j]);
    if (!row_.uniform) capped += row_.p[j] * std::min(std::abs(row_.linear[j]), static_cast<double>(params_.softcap));
    depth += row_.p[j] * std::min(row_.depth[j], 1e6);
    p += row_.p[j];
  }
  const auto of = [&](const LogError& e) {
    return e.magnitude * magnitude + e.linear * linear + e.capped * capped + e.depth * depth + e.constant * p;
  };
  Sources s{of(errors_.accumulation) + of(errors_.qk),
            of(errors_.logit) + of(errors_.exp) + rescales_ * ex2_ * p + row_.sink_p * sink_error_, of(errors_.merge)};
  const double all = s.qk + s.exp + s.merge;
  return all > 0 && all < std::numeric_limits<double>::infinity() ? Sources{s.qk / all, s.exp / all, s.merge / all}
                                                                  : Sources{0, 1, 0};
}

}  // namespace assay
