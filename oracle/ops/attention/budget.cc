// The bound T0 of attention for one declared arithmetic, row by row (numerics.md 2.2 to 2.7, corrected by 2.14).
//
// Natural-log units; u = 2^-24; x_j = cap(y_j) + b_j, y_j = factor_j s_j; D_j = x_max - x_j; A_j = |factor_j| sum |q_c
// k_jc|; X = max(|x_max|, |sink|); S+ = max(0, sink - x_max). Every undeclared field takes the worst member of its
// enum. The weight of key j after all rescalings is kappa w_j e^eta_j with one common kappa and |eta_j| <= eps_j, the
// sum of
//
//   qk      relative A_j (+ floor)                    accumulation of QK^T: budget.h
//           u_store |y_j|                             storage of S
//           |factor| 2^-126 d (1 + largest operand)   flushed operands
//   logit   u |y_j|                                   scale on the score, or a soft cap or bias that needs it there
//           4u A_j                                    factors of q and k: on the operands, the score or the constant
//           (4u + eps_tanh) min(|y_j|, cap)           y / cap twice rounded, tanh, times cap; d tanh <= 1 and |z| /
//           cosh^2 z <= |z| u |x_j| (+ 2u |b_j| or 3u |b_j|)          adding the bias; mask log2 e folded; slope times
//           distance, folded
//   exp     3u D_j                                    c^ = fl(scale log2 e) against c with x_max as reference, and
//   rounding of
//                                                     y = fma(s, c^, -fl(m c^)) (or of y log2 e); u offset ln 2 more
//                                                     with an offset
//           u (|M_t| + |M_T|) + 2u (M_T - M_t)        fl(M_t c^) telescopes; exponents of alpha; only with a running
//           maximum. x_j or a
//             <= u (2X + D_j) + 2u D_j                larger logit is M_t, and none exceeds X (lazily, up to the
//             threshold less); twice
//                                                     the first part if an offset is subtracted from fl(M_t c^)
//           5u S+                                     all of that where the sink is the maximum
//           (1 + n_t) eps_ex2                         n_t <= R: how often the maximum may still rise after j's tile;
//           one more where
//                                                     each tile subtracts its own maximum and is scaled to the common
//                                                     one
//   merge   2^-22 max(ln 2, ln n) + 5u (X + D_j + ln n) + 3.2u (D_j + ln n + S+) + eps_ex2
//                                                     splits: lse_s = ln l_s + M_s and its exponential. o_s is N_s /
//                                                     l_s, so in e^lse_s o_s the row sum cancels but for lse_s' own
//                                                     errors: the logarithm (the sum, 2u |ln l|, 3u |x|, storage),
//                                                     lse_s - max and the exponential; |lse_s|
//                                                     <= X + D_j + ln n since lse_s >= x_j for every key j of the
//                                                     split.
//
// A sink is one more key with v = 0 and weight p_s. With psi_j = e^eps_j - 1 and Psi = sum p_j psi_j < 1 over keys and
// sink, o^ differs from o by no more than
//
//   W   = (sum p_j psi_j |v_j - o| + p_s psi_s |o|) / (1 - Psi)
//   R_P = [u_P sum p_j (1 + psi_j) |v_j| + sum f_j |v_j|] / (1 - Psi)           P rounded before P V; f_j = min(p_j,
//   eta_P) where P
//                                                                               may be subnormal: w_j below the
//                                                                               smallest normal number
//   R_A = (1 + 2 u_P) [E_pv + R u sum p_j |v_j|] / (1 - Psi)                    accumulation of P V, R rescalings of O
//   tau = (W + R_P + R_A) g + |o| (g - 1),   g = (1 + u_n) / (1 - s_l)          row sum and normalisation
//
// plus, for splits, u sum p_j |v_j| + gamma_{S+2} (sum p_j |v_j| + |o|): storage of o_s and their weighted mean.
// Because sum p_j (v_j - o) = p_s o, the deviation of a weighted mean from o is sum p_j (a_j - 1)(v_j - o) - p_s (a_s -
// 1) o over sum p a.
//
// Cheap majorants of the sums over v (budget_output.cc): sum p |v| is known; with v_max the head's largest |v|, for any
// t
//   sum p psi |v - o| <= min(t (sum p |v| + |o|) + (v_max + |o|) sum p (psi - t)+,  sqrt(sum p psi^2) sqrt(v_max sum p
//   |v|)).
//
// Normalising at every step: l_t O_t = l_{t-1} alpha O_{t-1} + beta P V with the computed l, so only the roundings of
// each step add up.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/row_budget.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

}  // namespace

WeightFormat weight_format(const AttentionParams& params, const Arithmetic& arithmetic) {
  WeightFormat weight{arithmetic.p_known ? arithmetic.p_format : params.input, 0, arithmetic.p_offset, 0};
  const bool narrow = info(weight.format).storage_bits == 8;
  if (weight.format != Format::kFp32) weight.unit_roundoff = info(weight.format).unit_roundoff;
  // FlashAttention-4 waits for 2^8, but not with 8-bit P, which would saturate.
  if (arithmetic.max_policy == MaxPolicy::kLazy) weight.lazy = arithmetic.lazy_threshold;
  if (arithmetic.max_policy == MaxPolicy::kUnknown) weight.lazy = narrow ? 0 : 8;
  return weight;
}

double normalize_error(const AttentionParams& params, const Arithmetic& arithmetic) {
  double factor = params.descale == Descale::kTensor || params.descale == Descale::kHead ? 2 * kU32 : 0.0;
  if (params.sink != Sink::kNone) factor += 3 * kU32;  // l keep / (l keep + sink)
  switch (arithmetic.normalize) {
    case Normalize::kReciprocal: return factor + 3 * kU32;
    case Normalize::kDivide: return factor + 2 * kU32;
    case Normalize::kEveryStep: return factor;
    case Normalize::kUnknown: break;
  }
  return factor + 6 * kU32;
}

Format value_operand(const AttentionParams& params, const Arithmetic& arithmetic) {
  if (!arithmetic.p_known) return params.input;
  if (arithmetic.p_format != Format::kFp32) return arithmetic.p_format;
  return info(params.input).storage_bits == 8 ? Format::kFp32 : params.input;
}

namespace {

/// T0 counts tiles from key 0 or not at all.
Arithmetic counted_from_zero(Arithmetic a) {
  if (a.split_at > 0) a.tile_n = 0;
  return a;
}

}  // namespace

RowBudget::RowBudget(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic)
    : row_(row),
      params_(params),
      arith_(counted_from_zero(arithmetic)),
      n_(row.keys.size()),
      weight_(weight_format(params, arithmetic)),
      ex2_(exponential_error(arithmetic.exponential)) {
  if (row_.value_factor.empty()) return;
  factor_high_ = largest_of(row_.value_factor);
  if (row_.value_factor.size() == 1) return;
  // Only factors that differ between keys may multiply P.
  for (double factor : row_.value_factor)
    if (factor != 0) factor_low_ = std::min(factor_low_, std::abs(factor));
  p_factor_ = std::max(1.0, factor_high_);
}

/// Longest chain of additions of the row sum.
double RowBudget::row_sum_chain() const {
  const auto n = static_cast<double>(n_);
  if (arith_.row_sum_tree != RowSumTree::kQuad) return n;
  const double per_tile = own_tile() || every_step() ? tiles() : 0;  // each tile's sum may be finished and added
  if (listed()) return std::min(n, 2 * pieces(params_.list_len, 8)) + 2 + per_tile;
  std::array<double, 4> lanes{};
  if (contiguous()) {
    const std::int32_t whole = static_cast<std::int32_t>(n_) / 8 * 8;
    for (double& lane : lanes) lane = whole / 4;
    for (std::int32_t key = row_.keys.front() + whole; key <= row_.keys.back(); ++key)
      ++lanes[static_cast<std::size_t>(key % 8 / 2)];
  } else {
    for (std::int32_t key : row_.keys) ++lanes[static_cast<std::size_t>(key % 8 / 2)];
  }
  return *std::max_element(lanes.begin(), lanes.end()) + 2 + per_tile;
}

/// (L) without the weights and the row sum: the logarithm (2u |ln l|; ln l is that of the kernel's own unit), m scale
/// and the last addition. Natural units.
RowBudget::LseEnd RowBudget::lse_end() const {
  const double raised = std::max(0.0, weight_.offset * kLn2) + weight_.lazy * kLn2 + above_;
  const double ln_l = log64(row_.sum) + raised;
  // max x <= lse <= max x + ln n holds without fp64's weights.
  const double lse = std::min(std::abs(row_.lse) + row_.lse_radius, top_ + above_ + ln_n_ + kLn2 + eps_max_);
  LseEnd end;
  end.logarithm =
      kLg2 * std::max(kLn2, ln_l + sum_error_) + 2 * kU32 * ln_l + 2 * kU32 * std::abs(weight_.offset) * kLn2;
  end.scaled = 3 * kU32 * top_ + kU32 * lse;
  if (params_.descale != Descale::kNone) end.scaled += 3 * kU32 * top_;
  if (split()) end.merge = kLg2 * std::max(kLn2, ln_n_) + 4 * kU32 * (lse + top_);
  if (params_.lse == LseBase::kTwo) end.base = 4 * kU32 * lse, end.unit = kLog2E;
  return end;
}

double RowBudget::LseEnd::tau(double weights) const {
  const double natural = (weights + logarithm + scaled + merge) * kSlack + 4 * kMinSubnormal32;
  const double tau = (natural + base) * unit;
  return tau >= 0 ? tau : kInf;
}

double RowBudget::lse_bound() {
  const LseEnd end = lse_end();
  const double weights = lse_weights(), row_sum = sum_error_ / (1 - sum_error_);
  double p_format = arith_.row_sum_of == RowSumOf::kUnroundedP ? 0 : 2 * weight_.unit_roundoff;
  if (p_format > 0)
    p_format += info(weight_.format).min_subnormal * floor_scale_ / factor_low_ * static_cast<double>(n_) / row_.sum;
  const double tau = end.tau(weights + row_sum + p_format);
  if (shares_ != nullptr) {
    const Sources by_source = sources();
    const bool finite = tau < kInf;
    const double up = finite ? kSlack * end.unit : 0, w = finite ? weights : 0;
    shares_->qk.push_back(w * by_source.qk * up);
    shares_->exp.push_back((w * by_source.exp + end.scaled) * up);
    shares_->p.push_back(p_format * up);
    shares_->pv.push_back(0);
    shares_->merge.push_back((w * by_source.merge + end.merge) * up);
    shares_->normalise.push_back((row_sum + end.logarithm) * up + (finite ? end.base * end.unit : 0));
    shares_->subnormals.push_back(4 * kMinSubnormal32 * end.unit);
    shares_->hull.push_back(finite ? 0 : tau);
  }
  return tau;
}

RowBound RowBudget::bound(TermShares* shares) {
  shares_ = shares;
  RowBound bound, undecided;
  undecided.needs_keys = true;
  ln_n_ = log64(static_cast<double>(n_));
  log_errors();
  count_records();
  if (needs_keys_) return undecided;
  // b_t = fl(M_t c^) is off by up to half an ulp, u |M_t c^|: that is the exponent P of the maximum may carry. A bias
  // can join the folded form too, so only a global maximum subtracted from the scaled score is free of it.
  const bool subtracts_first = arith_.max_policy == MaxPolicy::kGlobal && arith_.scale_form == ScaleForm::kOnScore;
  shift_ = row_.uniform || subtracts_first ? 0 : kU32 * largest_max_ * kLog2E * kSlack;
  floor_scale_ = exp2_64(std::min(shift_, 1000.0) - weight_.offset) * exp64(std::min(above_, 700.0));
  const double added = row_sum_chain() + rescales_ + 2 + (has_sink() ? 2 : 0) + (own_tile() ? 1 : 0);
  sum_error_ = gamma32(added) + static_cast<double>(n_ + 1) * kMinNormal32 * floor_scale_ / row_.denominator;
  find_range(bound);
  if (!bound.out_of_range.empty()) {
    bound.o_tau.assign(static_cast<std::size_t>(row_.operands->dim_v), kInf);
    bound.lse_tau = kInf;
    if (shares_ != nullptr) {
      const std::vector<double> zero(bound.o_tau.size() + 1, 0.0), infinite(bound.o_tau.size() + 1, kInf);
      *shares_ = {zero, zero, zero, zero, zero, zero, zero, infinite};
    }
    return bound;
  }
  weigh_keys();
  if (!needs_keys_) outputs(bound);
  if (needs_keys_) return undecided;
  bound.lse_tau = lse_bound();
  const double lowest = weight_.format == Format::kFp32 ? 126 : -info(weight_.format).min_exponent;
  bound.infinite_v_depth = (std::min(120.0, lowest - 1) + weight_.offset) * kLn2 - above_ + log64(factor_low_);
  return bound;
}

RowBound bound_row(const RowAnalysis& row, const AttentionParams& params, const Arithmetic& arithmetic) {
  return RowBudget(row, params, arithmetic).bound();
}

/// The kernel's maximum is the sink or, where a kernel guards a maximum of -inf over the keys, 0; then l = e^(sink - maximum) with
/// the exponential's error and that of its argument, and LSE = maximum + ln l [- offset ln 2], or a merge of that with empty states.
double lone_sink_tau(double sink, const AttentionParams& params, const Arithmetic& arithmetic) {
  const double x = std::abs(sink), offset = std::abs(arithmetic.p_offset) * kLn2;
  const double logarithms = kLg2 * (std::max(kLn2, x + offset) + kLn2);
  const double natural =
      (exponential_error(arithmetic.exponential) + logarithms + kU32 * (14 * x + 4 * offset)) * kSlack + 4 * kMinSubnormal32;
  return params.lse == LseBase::kTwo ? (natural + 4 * kU32 * x) * kLog2E : natural;
}

std::vector<std::string> bound_assumptions(const Arithmetic& a) {
  std::vector<std::string> all{
      "T0: no legal arithmetic of the declared formats and enums gives a rejected value; order of accumulation is free",
      exponential_assumption(a.exponential), kLogAssumption};
  if (a.qk == Accumulate::kBlockHopper || a.pv == Accumulate::kBlockHopper)
    all.emplace_back(
        "tensor-core accumulation follows the block-FMA model of Hopper (16-bit inputs: K = 16, F = 25; 8-bit: K = 32, "
        "F = 13; truncation)");
  if (a.normalize == Normalize::kUnknown && a.tile_n == 0)
    all.emplace_back("O is normalised at the end, or at most once per 16 keys");
  if (a == Arithmetic{})
    all.emplace_back(
        "nothing is declared: the bound is the union over the family: accumulation in fp32, or block FMA of Ampere "
        "(Ada for 8 bits) or Hopper, never promoted; S and P in fp32 or the input format; tanh within 2^-11; scale "
        "folded "
        "or on the score; any tiles, order and splits; the maximum global, running, lazy up to 2^8 (16-bit inputs) or "
        "of "
        "each tile; l of rounded or unrounded P in any order; subnormals kept or flushed");
  return all;
}

}  // namespace assay
