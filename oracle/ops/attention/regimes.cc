// Which numeric regimes an attention case reaches: its lengths, and a few of its rows tile by tile.
#include "oracle/ops/attention/regimes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/exp64.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {
namespace {

enum Axis : std::size_t {
  kResidue, kTiles, kTop, kUpdates, kRise, kTies, kFlushed, kRoundedP, kEmptyTile, kEmptySplit, kCancel, kValues, kSigns, kFactor,
  kValueFactor, kPages, kGroup, kQueries, kAxes
};

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr std::array kRiseLimits{1e-9, 1.0, 8.0, 24.0, 88.0, 104.0, 1e3};
constexpr std::array kCancelLimits{0x1p-20, 0x1p-10, 0x1p-4, 0.5};
constexpr std::array kValueLimits{0x1p-149, 0x1p-126, 0x1p-24, 0x1p-6, 0x1p6, 0x1p15, 0x1p100};
constexpr std::array kFactorLimits{0.0, 0x1p-149, 0x1p-20, 0x1p-6, 1.0, 0x1p6, 0x1p20};

std::vector<RegimeAxis> axes() {
  std::vector<RegimeAxis> all(kAxes);
  all[kResidue] = {"keys behind the last full tile", {"0", "1", "all but one", "others"}};
  all[kTiles] = {"tiles of a sequence", {"0", "1", "2", "3", "4.."}};
  all[kTop] = {"tile of the largest logit", {"only", "first", "middle", "last", "last, not full"}};
  all[kUpdates] = {"rises of the running maximum", {"0", "1", "2..3", "4.."}};
  all[kRise] = {"largest rise", {"0", "..1", "1..8", "8..24", "24..88", "88..104", "104..1e3", "1e3.."}};
  all[kTies] = {"keys that share the largest logit", {"1", "2", "3..", "all"}};
  all[kFlushed] = {"weights below 2^-126", {"none", "some", "all but the largest"}};
  all[kRoundedP] = {"P in its format", {"not rounded", "normal", "some subnormal", "some lost", "some beyond it"}};
  all[kEmptyTile] = {"tile without a key", {"none", "first", "middle", "last", "all"}};
  all[kEmptySplit] = {"split without a key", {"no splits", "none", "some"}};
  all[kCancel] = {"|o| over sum of p |v|", {"below 2^-20", "below 2^-10", "below 2^-4", "below 1/2", "to 1"}};
  all[kValues] = {"largest |v| with weight",
                  {"0", "subnormal", "..2^-24", "..2^-6", "..2^6", "..2^15", "..2^100", "2^100..", "not finite"}};
  all[kSigns] = {"signs of a channel's values", {"one", "both"}};
  all[kFactor] = {"factor of q k", {"negative", "0", "..2^-20", "..2^-6", "..1", "..2^6", "..2^20", "2^20.."}};
  all[kValueFactor] = {"factor of v", {"negative", "0", "..2^-20", "..2^-6", "..1", "..2^6", "..2^20", "2^20.."}};
  all[kPages] = {"keys on the last page", {"no pages", "none", "1", "all but one", "full", "others"}};
  all[kGroup] = {"query heads per key head", {"1", "2", "3..8", "9.."}};
  all[kQueries] = {"queries over keys", {"1 query", "fewer", "as many", "more"}};
  return all;
}

void mark_lengths(const AttentionProblem& problem, std::int64_t tile, Regimes& reached) {
  const AttentionParams& p = problem.params();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t keys = problem.kv_len(b), rest = keys % tile, queries = problem.q_len(b);
    reached.mark(kResidue, rest == 0 ? 0 : rest == 1 ? 1 : rest == tile - 1 ? 2 : 3);
    reached.mark(kTiles, static_cast<std::size_t>(std::min<std::int64_t>((keys + tile - 1) / tile, 4)));
    reached.mark(kQueries, queries == 1 ? 0 : queries < keys ? 1 : queries == keys ? 2 : 3);
    const std::int64_t on_page = p.kv_store == KvStore::kContiguous ? -1 : (keys + p.page - 1) % p.page + 1;
    reached.mark(kPages, on_page < 0            ? 0
                         : keys == 0            ? 1
                         : on_page == p.page    ? 4
                         : on_page == 1         ? 2
                         : on_page == p.page - 1 ? 3
                                                : 5);
  }
  const std::int64_t group = p.heads_q / p.heads_kv;
  reached.mark(kGroup, group == 1 ? 0 : group == 2 ? 1 : group <= 8 ? 2 : 3);
}

/// One row's tiles: where keys are missing, where the maximum is and how it got there.
class TileWalk {
 public:
  TileWalk(const std::vector<std::int32_t>& keys, const std::vector<double>& logits, std::int64_t length,
           std::int64_t tile)
      : tile_(tile), length_(length), top_(static_cast<std::size_t>((length + tile - 1) / tile), -INFINITY) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      double& top = top_[static_cast<std::size_t>(keys[j] / tile)];
      top = std::max(top, logits[j]);
    }
  }

  /// The largest rise of the maximum, in natural logarithms.
  double mark(int splits, Regimes& reached) const {
    double running = -INFINITY, rise = 0;
    std::size_t updates = 0, at = 0, empty = 0;
    for (std::size_t t = 0; t < top_.size(); ++t) {
      if (top_[t] == -INFINITY) {
        ++empty;
        reached.mark(kEmptyTile, t == 0 ? 1 : t + 1 == top_.size() ? 3 : 2);
      } else if (top_[t] > running) {
        if (running > -INFINITY) ++updates, rise = std::max(rise, top_[t] - running);
        running = top_[t], at = t;
      }
    }
    if (empty == 0 || empty == top_.size()) reached.mark(kEmptyTile, empty == 0 ? 0 : 4);
    reached.mark(kUpdates, updates <= 1 ? updates : updates <= 3 ? 2 : 3);
    reached.mark_below(kRise, rise, kRiseLimits);
    const bool last = at + 1 == top_.size();
    reached.mark(kTop, top_.size() == 1 ? 0 : at == 0 ? 1 : !last ? 2 : length_ % tile_ == 0 ? 3 : 4);
    mark_splits(splits, reached);
    return rise;
  }

 private:
  void mark_splits(int splits, Regimes& reached) const {
    if (splits <= 1) return reached.mark(kEmptySplit, 0);
    const std::size_t each = (top_.size() + static_cast<std::size_t>(splits) - 1) / static_cast<std::size_t>(splits);
    bool some = each * static_cast<std::size_t>(splits - 1) >= top_.size();
    for (std::size_t t = 0; t < top_.size(); t += each)
      some |= std::all_of(top_.begin() + static_cast<std::ptrdiff_t>(t),
                          top_.begin() + static_cast<std::ptrdiff_t>(std::min(t + each, top_.size())),
                          [](double top) { return top == -INFINITY; });
    reached.mark(kEmptySplit, some ? 2 : 1);
  }

  std::int64_t tile_, length_;
  std::vector<double> top_;  ///< largest logit of each tile; -inf: no key with weight
};

/// What P's format makes of weights relative to the largest; a lazy maximum lets P rise by e^rise.
void mark_rounded_p(const Arithmetic& declared, const std::vector<double>& weight, double rise, Regimes& reached) {
  if (!declared.p_known || declared.p_format == Format::kFp32) return reached.mark(kRoundedP, 0);
  const FormatInfo& format = info(declared.p_format);
  const auto unit = static_cast<double>(std::int64_t{1} << declared.p_offset);
  const bool stays = declared.max_policy == MaxPolicy::kLazy && rise <= declared.lazy_threshold * kLn2;
  if (stays && unit * exp64(rise) > format.max_finite) reached.mark(kRoundedP, 4);
  const double least = decode(declared.p_format, 1);
  bool subnormal = false, lost = false;
  for (const double w : weight) {
    lost |= w > 0 && w * unit <= least / 2;
    subnormal |= w * unit > least / 2 && w * unit < format.min_normal;
  }
  if (lost) reached.mark(kRoundedP, 3);
  if (subnormal) reached.mark(kRoundedP, 2);
  if (!lost && !subnormal) reached.mark(kRoundedP, 1);
}

/// Values under the row's weights, channel by channel: cancellation, size, signs.
void mark_values(const HeadOperands& head, const std::vector<std::int32_t>& keys, const std::vector<double>& weight,
                 Regimes& reached) {
  const auto channels = static_cast<std::size_t>(head.dim_v);
  std::vector<double> sum(channels), magnitude(channels), largest(channels), least(channels);
  double top = 0;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const double* v = head.v.data() + static_cast<std::size_t>(keys[j]) * channels;
    for (std::size_t c = 0; c < channels; ++c) {
      sum[c] += weight[j] * v[c];
      magnitude[c] += weight[j] * std::abs(v[c]);
      largest[c] = std::max(largest[c], v[c]);
      least[c] = std::min(least[c], v[c]);
      if (weight[j] > 0) top = std::max(top, std::abs(v[c]));
    }
  }
  for (std::size_t c = 0; c < channels; ++c) {
    if (magnitude[c] > 0) reached.mark_below(kCancel, std::abs(sum[c]) / magnitude[c], kCancelLimits);
    reached.mark(kSigns, largest[c] > 0 && least[c] < 0 ? 1 : 0);
  }
  reached.mark_below(kValues, top, kValueLimits);
  if (!head.special_v.empty()) reached.mark(kValues, kValueLimits.size() + 1);
}

void mark_factor(double factor, std::size_t axis, Regimes& reached) {
  if (factor == 0)
    reached.mark(axis, 1);
  else
    reached.mark_below(axis, factor, kFactorLimits);
}

class Sample {
 public:
  Sample(const AttentionProblem& problem, const Arithmetic& declared, Regimes& reached)
      : problem_(problem), counterfactual_(problem), declared_(declared), reached_(reached) {}

  void mark(const AttentionRow& row) {
    problem_.admissible_keys(row, keys_);
    mark_factor(problem_.score_factor(row, 0), kFactor, reached_);
    if (problem_.has_value_factor()) mark_factor(problem_.value_factor(row, 0), kValueFactor, reached_);
    const std::vector<double> logits = counterfactual_.logits(row, keys_);
    double top = -INFINITY;
    for (const double x : logits) {
      if (std::isnan(x) || x == INFINITY) return;
      top = std::max(top, x);
    }
    const double rise = TileWalk(keys_, logits, problem_.kv_len(row.batch), tile()).mark(declared_.splits, reached_);
    if (top == -INFINITY) return;
    std::vector<double> weight(logits.size());
    double sum = 0;
    std::size_t ties = 0, flushed = 0;
    for (std::size_t j = 0; j < logits.size(); ++j) {
      weight[j] = exp64(logits[j] - top);
      sum += weight[j];
      ties += logits[j] == top;
      flushed += weight[j] < 0x1p-126;
    }
    mark_rounded_p(declared_, weight, rise, reached_);
    for (double& w : weight) w /= sum;
    reached_.mark(kTies, ties == logits.size() && ties > 1 ? 3 : std::min<std::size_t>(ties, 3) - 1);
    reached_.mark(kFlushed, flushed == 0 ? 0 : flushed + ties == logits.size() ? 2 : 1);
    mark_values(counterfactual_.head(), keys_, weight, reached_);
  }

  std::int64_t tile() const { return declared_.tile_n > 0 ? declared_.tile_n : 64; }

 private:
  const AttentionProblem& problem_;
  Counterfactual counterfactual_;
  const Arithmetic& declared_;
  Regimes& reached_;
  std::vector<std::int32_t> keys_;
};

}  // namespace

const std::vector<RegimeAxis>& attention_regime_axes() {
  static const std::vector<RegimeAxis> all = axes();
  return all;
}

void attention_regimes(const Problem& raw, const Arithmetic& declared, Regimes& reached) {
  constexpr std::size_t kRows = 8;
  const AttentionProblem problem(raw);
  Sample sample(problem, declared, reached);
  mark_lengths(problem, sample.tile(), reached);
  const std::size_t rows = problem.rows().size(), step = std::max<std::size_t>(rows / kRows, 1);
  for (std::size_t i = 0; i < rows; i += step) {
    const AttentionRow& row = problem.rows()[rows - 1 - i];  // the last: under a causal mask it has the most keys
    if (problem.kv_len(row.batch) > 0) sample.mark(row);
  }
}

}  // namespace assay
