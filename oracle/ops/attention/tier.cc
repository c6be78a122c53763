// T1 and T2 of a row: the output that the replayed P give, and how far the kernel may still be from it ((O2) of
// numerics.md 2.4).
//
// One split. Weights w_j = p_j A_t with p_j the oracle's fp32 P before rounding, P~_j the rounded one, h_j half the gap
// where it is ambiguous, L = sum w_j [+ the sink's], o~ = sum P~_j A_t v_j / L. The kernel has, with |ln a_t| <= tau_t
// (tile_walk.cc) and |delta_j| <= e_j (weight_replay.cc),
//   N = sum P~_j A_t a_t v_j + E           l = (sum w_j a_t e^delta_j [+ w_s e^delta_s]) (1 + sigma),  |sigma| <= s_l
//   N / l' - o~ = [sum (P~ - P~mid) A v + sum (a_t - 1) P~ A v + E - o~ (sum w_j (a_t e^delta_j - 1) [+ ...])] / l', l'
//   = l / (1 + sigma)
// so with X = [sum w_j (e^(e_j + tau_t) - 1) + w_s (e^(e_s) - 1)] / L < 1 and g = (1 + u_n) / (1 - s_l)
//   tau = [ (sum h A |v| + sum (e^tau_t - 1) P~ A |v| + |E|) / L + |o~| X ] g / (1 - X) + |o~| (g - 1).
// (O2) of the notes leaves the maxima's own errors out of tau_t; they belong there: a pinned P~_j is relative to the
// kernel's M_t, and only the kernel's own M_t - M_T, off by error_t + error_T, carries it to the end. s_l counts
// roundings on true partial sums (row_sum.cc), E does (value_chain.cc). Where l sums the rounded P, w_j is P~_j A_t in
// the denominator too.
//
// Splits: o_s, tau_s as above; pi_s the exact weights (at the sink one more state with o = 0); the kernel weighs with
// pi_s e^eta_s,
//   d_s = ln(1 + Z_s) + s_l / (1 - s_l) + merge share of eps at the split's maximum (budget.cc),
// Z_s as X without the maxima's errors, which cancel in l_s e^M_s. The merged output is within
//   [sum pi_s (e^d_s - 1) |o_s - o~| + sum pi_s e^d_s (tau_s + u |o_s|)] / (1 - sum pi_s (e^d_s - 1)) + gamma_{S+2}
//   (sum pi_s |o_s| + |o~|)
// of o~ = sum pi_s o_s.
//
// LSE: that of the exact logits (T1) or of the emulated ones (T2), off by ln(1 + Z) + s_l / (1 - s_l) and what (L) adds
// at the end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/head_replay.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/ops/attention/row_sum.h"
#include "oracle/ops/attention/weight_replay.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargestX = 0.25;

/// e^x - 1 from above.
double excess(double x) { return x <= 0.5 ? x * (1 + x) : exp64(std::min(x, 700.0)) - 1; }

bool is_block(Accumulate kind) { return kind == Accumulate::kBlockAmpere || kind == Accumulate::kBlockHopper; }

/// Logits as the kernel may have them: exact ones with errors, or emulated.
struct Logits {
  std::vector<double> depth, error;
  double max = 0;
  std::vector<double> score;  ///< emulated, with the scale's sign; empty in T1
  bool bits = false;          ///< P's argument is known bit by bit from `score`
  float c = 0;
};

struct SplitState {
  std::vector<double> o, tau;  ///< [dv], before the value factor
  double log_weight = 0;       ///< ln(L e^M_T) relative to e^x_max, without the offset
  double z = 0, row_sum = 0;   ///< Z_s, s_l
  double depth = 0;
};

}  // namespace

struct TierReplay::State {
  State(const AttentionProblem& p, const Arithmetic& a)
      : problem(p), params(p.params()), arith(a), round(a.p_known ? a.p_format : Format::kFp32) {}

  bool logits(const RowAnalysis& row, RowBudget& budget, Level level, Logits& out);
  bool split(const RowAnalysis& row, const RowBudget& budget, const Logits& logits, const WalkInput& input,
             const SplitWalk& walk, SplitState& out);
  void merge(const RowAnalysis& row, const RowBudget& budget, const LogErrors& errors, std::vector<SplitState>& splits,
             RowTier& tier);
  RowTier tier(const RowAnalysis& row, const RowBound& t0, Level level);

  const AttentionProblem& problem;
  const AttentionParams& params;
  const Arithmetic arith;
  PositiveRounder round;
  HeadReplay head;
  WeightReplay weights;
  ValueSums sums;
  std::vector<double> score_error;
};

/// Errors of the logits before any maximum; in T2 the logits themselves.
bool TierReplay::State::logits(const RowAnalysis& row, RowBudget& budget, Level level, Logits& out) {
  const LogErrors& e = budget.errors();
  const std::size_t n = row.keys.size();
  const auto factor = [&](std::size_t j) { return row.factor[row.factor.size() == 1 ? 0 : j]; };
  const auto cap = static_cast<double>(params.softcap);
  const bool emulated = level == Level::kT2, known = is_block(arith.qk);
  head.load(problem, row, known);
  LogError before = e.qk;
  before += e.logit;
  if (known) {
    const MmaModel& model = block_model(arith.qk, params.input);
    if (emulated)
      head.emulate_scores(problem, row, model, out.score);
    else
      head.score_errors(problem, row, model, score_error);
  } else {
    before += e.accumulation;
  }
  out.error.resize(n);
  out.max = row.max_logit;
  if (!emulated) {
    out.depth = row.depth;
    for (std::size_t j = 0; j < n; ++j) {
      const double y = std::abs(row.linear[j]);
      out.error[j] = (known ? std::abs(factor(j)) * score_error[j] : 0.0) +
                     before.magnitude * std::abs(factor(j)) * row.magnitude[j] + before.linear * y +
                     before.capped * std::min(y, cap) + before.depth * row.depth[j] + before.constant;
      out.error[j] *= kSlack;
    }
    return true;
  }
  // A flushed operand below 2^-126 is all that e.qk may hold here. What a folded scale or a plain one on the score
  // gives is known.
  const bool plain = params.softcap == 0 && params.alibi == Alibi::kNone && params.descale == Descale::kNone;
  const bool folded = arith.scale_form == ScaleForm::kFolded && row.bias.empty();
  const bool rounded = plain && arith.scale_form == ScaleForm::kOnScore;
  std::vector<double> x(n);
  double top = -kInf;
  for (std::size_t j = 0; j < n; ++j) {
    const double s = out.score[j], y = factor(j) * s;
    if (!std::isfinite(s)) return false;
    if (rounded) {
      x[j] = static_cast<double>(static_cast<float>(y));  // two fp32 factors: exact in fp64
      if (!row.bias.empty()) x[j] = static_cast<double>(static_cast<float>(x[j] + row.bias[j]));
    } else {
      x[j] = (cap > 0 ? cap * tanh64(y / cap) : y) + (row.bias.empty() ? 0.0 : row.bias[j]);
    }
    top = std::max(top, x[j]);
    out.error[j] = e.qk.magnitude * std::abs(factor(j)) * row.magnitude[j] + e.qk.constant;
    if (!rounded && !(plain && folded))
      out.error[j] += (e.logit.magnitude * std::abs(factor(j)) * row.magnitude[j] + e.logit.linear * std::abs(y) +
                       e.logit.capped * std::min(std::abs(y), cap) + e.logit.depth * row.depth[j] + e.logit.constant) *
                      kSlack;
    out.error[j] += 0x1p-49 * std::abs(x[j]);  // fp64's own, tanh64's too
  }
  out.max = top;
  out.depth.resize(n);
  for (std::size_t j = 0; j < n; ++j) out.depth[j] = top - x[j];
  // fl32(scale log2 e), in whichever of two ways it is formed; both must agree.
  const double scale = std::abs(static_cast<double>(params.scale));
  out.c = static_cast<float>(scale * kLog2E);
  const float other = static_cast<float>(scale) * static_cast<float>(kLog2E);
  out.bits = plain && folded && out.c == other && budget.weight().offset == 0 && e.qk.magnitude == 0 &&
             e.qk.constant < 0x1p-100;
  if (params.scale < 0.0F)
    for (double& s : out.score) s = -s;
  if (out.bits) std::fill(out.error.begin(), out.error.end(), 0.0);
  return true;
}

bool TierReplay::State::split(const RowAnalysis& row, const RowBudget& budget, const Logits& logits,
                              const WalkInput& input, const SplitWalk& walk, SplitState& out) {
  const int offset = budget.weight().offset;
  const double off = std::abs(offset) * kLn2, ex2 = budget.exponential();
  WeightErrors errors{.per_nat = (params.descale == Descale::kNone ? 3 : 6) * kU32,
                      .per_maximum = arith.scale_form == ScaleForm::kOnScore && row.bias.empty() && params.softcap == 0
                                         ? 0.0
                                         : (offset == 0 ? 1 : 2) * kU32,
                      .constant = ex2 + 3 * kU32 * off + 2 * row.psi64,
                      .may_flush = arith.subnormals != Subnormals::kKept};
  if (arith.scale_form == ScaleForm::kOnScore) errors.per_maximum = 0;
  if (logits.bits)
    replay_folded(input, walk, logits.score, logits.c, ex2, errors, round, weights);
  else
    replay_weights(input, walk, logits.max, offset, errors, round, weights);

  ChainForm form{.model = nullptr,
                 .operand = params.input,
                 .promote_n = arith.promote_n,
                 .own_tile = arith.max_policy == MaxPolicy::kOwnTile,
                 .tile_n = arith.tile_n};
  if (is_block(arith.pv) && value_operand(params, arith) == params.input)
    form.model = &block_model(arith.pv, params.input);
  form.magnitudes = form.model == nullptr || arith.normalize == Normalize::kUnknown;
  sum_values(walk, row.keys, weights, head.values(row), form, sums);

  // Sums over the keys: L, what the denominator and the LSE may be off by, the rounded P.
  double l = 0, x = 0, z = 0, rounded = 0, gaps = 0, largest_error = 0, events = 0;
  for (const TileStep& step : walk.steps) {
    events += step.event ? 1 : 0;
    const double tile = excess(step.weight_error);
    for (std::size_t j = step.begin; j < step.end; ++j) {
      const double w = weights.p[j] * step.weight, error = weights.error[j];
      largest_error = std::max(largest_error, error);
      l += w;
      x += w * excess(error + step.weight_error);
      z += w * excess(error - step.error + step.weight_rounding);
      rounded += weights.tilde[j] * step.weight;
      gaps += (weights.gap[j] + (weights.tilde[j] + weights.gap[j]) * tile) * step.weight;
    }
  }
  if (!(largest_error < 50) || !(l > 0) || !(l < kInf)) return false;
  out.z = z / l;
  out.depth = walk.depth;
  out.log_weight = log64(l) - offset * kLn2 - walk.depth;
  double sum_error = row_sum_error(walk, row.keys, weights.p, arith);
  if (arith.row_sum_of == RowSumOf::kRoundedP) l = rounded, x = gaps;
  if (arith.row_sum_of == RowSumOf::kUnknown) x += std::abs(rounded - l) + gaps;
  if (budget.has_sink() && arith.splits == 1) {
    const double sink = exp2_64(offset) * exp64(std::min(700.0, row.sink - logits.max + walk.depth));
    l += sink;
    x += sink * excess(budget.sink_error(events + 1));
    sum_error += 2 * kU32;
  }
  x /= l;
  if (!(x < kLargestX) || !(out.z < kLargestX)) return false;
  const auto n = static_cast<double>(row.keys.size());
  sum_error = sum_error * (1 + 2 * x) * kSlack + (n + 1) * kMinNormal32 * std::max(1.0, exp2_64(offset)) / l;
  if (!(sum_error < kLargestX)) return false;
  out.row_sum = sum_error;

  const std::size_t dv = sums.sum.size();
  const double kept = 1 - sum_error, g = (1 + normalize_error(params, arith)) / kept, inflate = g / (1 - x);
  const auto steps = static_cast<double>(walk.steps.size());
  double accumulation = 0;  // relative to sum p |v|
  if (form.model == nullptr) {
    const ValueAccumulation pv = budget.value_accumulation();
    accumulation = pv.chain.relative + pv.added + steps * kU32;
  } else if (arith.normalize == Normalize::kUnknown) {
    accumulation = 7 * kU32 * steps;
  }
  const double u_p = budget.weight().unit_roundoff;
  const double floors = (4 * n * kMinNormal32 * 0x1p-13 + (events + 4) * kMinSubnormal32) / l +
                        (arith.subnormals == Subnormals::kKept ? 0.0 : kMinNormal32 * (1 + n / l));
  const double factor = row.value_factor.empty() ? 1 : std::abs(row.value_factor[0]);
  out.o.resize(dv), out.tau.resize(dv);
  for (std::size_t c = 0; c < dv; ++c) {
    const double o = sums.sum[c] / l, size = std::abs(o);
    const double fp64 = factor > 0 ? (n + 64) * 0x1p-52 * row.operands->v_max[c] / factor : 0;
    const double numerator =
        (sums.ambiguous[c] + sums.factors[c] + sums.error[c] + accumulation * (1 + 2 * u_p) * sums.magnitude[c]) / l +
        fp64;
    out.o[c] = o;
    out.tau[c] = ((numerator + size * x) * inflate + size * (g - 1)) * kSlack + floors;
  }
  return true;
}

void TierReplay::State::merge(const RowAnalysis& row, const RowBudget& budget, const LogErrors& errors,
                              std::vector<SplitState>& splits, RowTier& tier) {
  const std::size_t dv = splits[0].o.size();
  double largest = -kInf, total = 0;
  for (const SplitState& s : splits) largest = std::max(largest, s.log_weight);
  std::vector<double> weight, doubt;
  for (const SplitState& s : splits) {
    weight.push_back(exp64(s.log_weight - largest));
    doubt.push_back(
        excess(log64(1 + s.z) + s.row_sum / (1 - s.row_sum) + errors.merge.constant + errors.merge.depth * s.depth));
    total += weight.back();
  }
  double sink = 0, sink_doubt = 0;
  if (budget.has_sink()) {
    sink = exp64(std::min(700.0, row.sink - row.max_logit - largest));
    sink_doubt = excess(budget.sink_error(static_cast<double>(splits.size()) + 2));
    total += sink;
  }
  double d = sink * sink_doubt / total;
  for (std::size_t s = 0; s < splits.size(); ++s) weight[s] /= total, d += weight[s] * doubt[s];
  if (!(d < kLargestX)) return;
  const double roundings = gamma32(static_cast<double>(arith.splits) + 2 + (sink > 0 ? 4 : 0));
  for (std::size_t c = 0; c < dv; ++c) {
    double o = 0, spread = 0, inner = 0, size = 0;
    for (std::size_t s = 0; s < splits.size(); ++s) o += weight[s] * splits[s].o[c];
    for (std::size_t s = 0; s < splits.size(); ++s) {
      spread += weight[s] * doubt[s] * std::abs(splits[s].o[c] - o);
      inner += weight[s] * (1 + doubt[s]) * (splits[s].tau[c] + kU32 * std::abs(splits[s].o[c]) + kMinSubnormal32);
      size += weight[s] * std::abs(splits[s].o[c]);
    }
    spread += sink / total * sink_doubt * std::abs(o);
    tier.mid[c] = o;
    tier.tau[c] = ((spread + inner) / (1 - d) + roundings * (size + std::abs(o))) * kSlack +
                  (static_cast<double>(splits.size()) + 4) * kMinSubnormal32;
  }
}

RowTier TierReplay::State::tier(const RowAnalysis& row, const RowBound& t0, Level level) {
  const auto dv = static_cast<std::size_t>(row.operands->dim_v);
  RowTier tier{std::vector<double>(dv, 0.0), std::vector<double>(dv, kInf), 0, kInf};
  if (!t0.out_of_range.empty() || row.uniform || !(row.psi64 < 0x1p-30)) return tier;
  RowBudget budget(row, params, arith);
  Logits in;
  if (!logits(row, budget, level, in)) return tier;
  const LogErrors& errors = budget.errors();
  const WalkInput input{row.keys, in.depth, in.error, row.operands->keys};
  const auto walks = walk_tiles(input, arith, budget.exponential());
  if (!walks) return tier;
  if (budget.has_sink() && arith.splits == 1) {
    // A maximum that starts at the sink is the same as one that does not only where the keys exceed it from the first
    // tile on.
    if (arith.max_policy == MaxPolicy::kLazy) return tier;
    for (const TileStep& step : (*walks)[0].steps)
      if (!(step.depth + step.error < in.max - row.sink - 8 * kU32 * (std::abs(row.sink) + std::abs(in.max))))
        return tier;
  }
  std::vector<SplitState> splits(walks->size());
  for (std::size_t s = 0; s < walks->size(); ++s)
    if (!split(row, budget, in, input, (*walks)[s], splits[s])) return tier;

  if (arith.splits == 1) {
    tier.mid = splits[0].o;
    tier.tau = splits[0].tau;
  } else {
    merge(row, budget, errors, splits, tier);
  }
  if (!row.value_factor.empty()) {
    const double factor = row.value_factor[0];
    for (std::size_t c = 0; c < dv; ++c) tier.mid[c] *= factor, tier.tau[c] *= std::abs(factor);
  }
  for (double& tau : tier.tau)
    if (!(tau >= 0)) tau = kInf;

  if (params.lse == LseBase::kNone || arith.row_sum_of != RowSumOf::kUnroundedP) return tier;
  // Relative to e^x_max: sum over the splits, and the sink where it counts.
  double sum = 0, doubt = 0;
  for (const SplitState& s : splits) {
    const double weight = exp64(s.log_weight);
    double d = log64(1 + s.z) + s.row_sum / (1 - s.row_sum);
    if (arith.splits != 1) d += errors.merge.constant + errors.merge.depth * s.depth;
    sum += weight;
    doubt += weight * excess(d);
  }
  if (params.sink == Sink::kInLse && budget.has_sink()) {
    const double sink = exp64(std::min(700.0, row.sink - in.max));
    sum += sink;
    doubt += sink *
             excess(budget.sink_error(static_cast<double>(splits[0].o.size() > 0 ? (*walks)[0].steps.size() : 0) + 2));
  }
  const double natural = level == Level::kT2 ? in.max + log64(sum) : row.lse;
  const double radius = level == Level::kT2 ? 0x1p-44 * (1 + std::abs(in.max) + std::abs(natural)) : row.lse_radius;
  const RowBudget::LseEnd end = budget.lse_end();
  tier.lse_mid = natural * end.unit;
  tier.lse_tau = end.tau(log64(1 + doubt / sum)) + radius * end.unit * (1 + 0x1p-40) + 0x1p-50 * std::abs(tier.lse_mid);
  if (!(tier.lse_tau >= 0)) tier.lse_tau = kInf;
  return tier;
}

bool tier_applies(const AttentionParams& params, const Arithmetic& a, Level level) {
  if (level == Level::kT0) return false;
  const bool structure = a.p_known && a.p_format != Format::kFp32 && a.tile_n > 0 && a.splits > 0 &&
                         a.tile_order != TileOrder::kUnknown && a.max_policy != MaxPolicy::kUnknown;
  // A list has its own order of keys; factors by block may enter P or the partial P V; a global maximum of splits may
  // be either's.
  const bool replayable = params.data_mask != DataMask::kList && params.descale != Descale::kBlock &&
                          !(a.max_policy == MaxPolicy::kGlobal && a.splits > 1) &&
                          (a.normalize != Normalize::kEveryStep || a.max_policy == MaxPolicy::kOwnTile) &&
                          (a.promote_n == 0 || a.tile_n % a.promote_n == 0);
  if (!structure || !replayable) return false;
  return level == Level::kT1 || (is_block(a.qk) && a.score_store == ScoreStore::kFp32 &&
                                 a.scale_form != ScaleForm::kUnknown && params.input != Format::kFp32);
}

std::vector<std::string> tier_assumptions(const Arithmetic& a, Level level) {
  std::vector<std::string> all{
      fmt::format("T1: key tiles are the declared ones, {}; P is rounded to nearest; P V is one chain of blocks in key "
                  "order, or of each promoted group",
                  a.split_at > 0 ? "counted from key 0 and from the cut between the two splits"
                                 : "counted from key 0, and splits are equal runs of whole tiles")};
  if (a.tile_n > 0 && a.promote_n == 0 && a.max_policy == MaxPolicy::kOwnTile)
    all.emplace_back("T1: each tile's P V starts from zero");
  if (level == Level::kT2)
    all.emplace_back("T2: scores are the bits of the block-FMA model, channels in ascending order");
  return all;
}

TierReplay::TierReplay(const AttentionProblem& problem, const Arithmetic& arithmetic)
    : state_(std::make_unique<State>(problem, arithmetic)) {}
TierReplay::~TierReplay() = default;
RowTier TierReplay::tier(const RowAnalysis& row, const RowBound& t0, Level level) {
  return state_->tier(row, t0, level);
}

}  // namespace assay
