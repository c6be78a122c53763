// Classes from the mathematics: what infinities and NaNs among logits, values, factors and sinks make of a row.
#include "oracle/ops/attention/row_classes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

ClassSet declared_empty_lse(const AttentionParams& p) { return p.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf; }

void add_class(ClassSet more, std::vector<ClassSet>& classes) {
  for (ClassSet& set : classes) set |= more;
}

/// What values that are not finite do to one channel.
struct Channel {
  bool nan = false, infinite_factor = false, plus = false, minus = false, stray = false;
  void see(double factor, double v) {
    const double w = factor * v;
    nan = nan || std::isnan(factor) || std::isnan(v) || (std::isnan(w) && !std::isinf(factor));
    infinite_factor = infinite_factor || std::isinf(factor);
    plus = plus || w == kInf;
    minus = minus || w == -kInf;
  }
  ClassSet classes(bool nonzero) const {
    if (nan) return kNan;
    if (infinite_factor) return kPlusInf | kMinusInf | kNan;
    if (plus && minus) return kNan;
    if (plus) return kPlusInf;
    if (minus) return kMinusInf;
    return nonzero ? kNumber : kZero;
  }
};

/// Marks channels with a w that is not finite among the keys that have no weight but may be multiplied by 0.
void find_special(const AttentionProblem& problem, const HeadOperands& head, const AttentionRow& row,
                  const std::vector<std::int32_t>& weighted, const std::vector<std::int32_t>& no_weight, std::vector<Channel>& channels) {
  std::vector<double> v(channels.size());
  const bool masked_too = problem.params().masked_nonfinite == MaskedNonfinite::kPropagates;
  for (const std::int32_t key : head.special_v) {
    const bool has_weight = std::binary_search(weighted.begin(), weighted.end(), key);
    if (!has_weight && !masked_too && !std::binary_search(no_weight.begin(), no_weight.end(), key)) continue;
    problem.load_v(head.batch, head.kv_head, key, v);
    const double factor = problem.value_factor(row, key);
    for (std::size_t c = 0; c < v.size(); ++c) {
      if (has_weight) channels[c].see(factor, v[c]);
      else channels[c].stray = channels[c].stray || !std::isfinite(factor * v[c]);
    }
  }
}

/// Rule 6, on top of what the row is without the sink.
void apply_infinite_sink(const AttentionParams& p, double sink, bool has_weights, RowTruth& truth) {
  for (ClassSet& set : truth.o_classes) {
    const bool finite = !has_weights || (set & (kNumber | kZero)) != 0;
    set = std::isnan(sink) || !finite ? kNan : kZero | kNan;
  }
  if (p.sink == Sink::kOutOfLse) {
    truth.lse_classes |= kNan;
  } else {
    truth.lse_classes = std::isnan(sink) ? kNan : kPlusInf | kNan;
    truth.facts.lse = sink;
  }
}

/// Rule 5: only the finite sink has weight.
void sink_alone(const AttentionParams& p, double sink, RowTruth& truth) {
  add_class(kZero, truth.o_classes);
  if (p.sink != Sink::kInLse) {
    truth.lse_classes = declared_empty_lse(p);
    return;
  }
  truth.lse_classes = kNumber;
  truth.facts.lse = truth.lse_mid = sink;
  if (p.lse == LseBase::kTwo) {
    truth.lse_mid = sink / kLn2;
    truth.lse_radius = 0x1p-51 * std::abs(truth.lse_mid);
  }
}

void drop_numbers(RowTruth& truth) {
  for (std::size_t c = 0; c < truth.o_classes.size(); ++c)
    if ((truth.o_classes[c] & kNumber) == 0) truth.o_mid[c] = truth.o_radius[c] = 0;
}

}  // namespace

bool classify_without_softmax(const AttentionProblem& problem, const HeadOperands& head, const AttentionRow& row,
                              const LogitFacts& logits, bool has_keys, RowTruth& truth) {
  const AttentionParams& p = problem.params();
  const auto dv = static_cast<std::size_t>(p.dim_v);
  const double sink = problem.sink(row);
  truth.o_mid.assign(dv, 0.0);
  truth.o_radius.assign(dv, 0.0);
  truth.o_classes.assign(dv, 0);
  if (logits.nan || logits.plus_inf) {
    truth.o_classes.assign(dv, kNan);
    truth.lse_classes = logits.nan ? kNan : static_cast<ClassSet>(kNan | kPlusInf);
    truth.facts.max_logit = truth.facts.lse = std::numeric_limits<double>::quiet_NaN();
    return false;
  }
  truth.facts.max_logit = truth.facts.min_logit = truth.facts.lse = -kInf;
  const bool infinite_sink = std::isnan(sink) || sink == kInf;
  bool mean = false;
  if (std::isfinite(sink)) {
    sink_alone(p, sink, truth);
    if (has_keys) {
      truth.lse_classes |= p.sink == Sink::kInLse ? kNan : kNan | kMinusInf;
      add_class(kNan, truth.o_classes);
    }
    std::vector<Channel> channels(dv);
    find_special(problem, head, row, {}, logits.no_weight, channels);
    for (std::size_t c = 0; c < dv; ++c)
      if (channels[c].stray) truth.o_classes[c] |= kNan;
  } else {
    mean = p.empty_output == EmptyOutput::kMean && head.keys > 0 && !infinite_sink;
    if (!mean) add_class(p.empty_output == EmptyOutput::kNan ? kNan : kZero, truth.o_classes);
    truth.lse_classes = declared_empty_lse(p);
    if (has_keys) {
      add_class(kNan, truth.o_classes);
      truth.lse_classes |= kNan | kMinusInf;
    }
  }
  if (infinite_sink) apply_infinite_sink(p, sink, false, truth);
  if (logits.capped_infinity || logits.infinite_factor) {
    add_class(kNan, truth.o_classes);
    truth.lse_classes |= kNan;
  }
  return mean;
}

void classify_values(const AttentionProblem& problem, const RowAnalysis& a, const std::vector<std::int32_t>& no_weight,
                     const std::vector<bool>& nonzero, RowTruth& truth) {
  std::vector<Channel> channels(nonzero.size());
  find_special(problem, *a.operands, a.row, a.keys, no_weight, channels);
  truth.o_classes.resize(nonzero.size());
  for (std::size_t c = 0; c < nonzero.size(); ++c) {
    truth.o_classes[c] = channels[c].classes(nonzero[c]);
    if (channels[c].stray) truth.o_classes[c] |= kNan;
  }
  drop_numbers(truth);
}

void classify_softmax(const AttentionProblem& problem, const RowAnalysis& a, const LogitFacts& logits,
                      const std::vector<bool>& nonzero, RowTruth& truth) {
  classify_values(problem, a, logits.no_weight, nonzero, truth);
  truth.lse_classes = kNumber;
  if (const double sink = problem.sink(a.row); std::isnan(sink) || sink == kInf)
    apply_infinite_sink(problem.params(), sink, true, truth);
  if (logits.capped_infinity || logits.infinite_factor) {
    add_class(kNan, truth.o_classes);
    truth.lse_classes |= kNan;
  }
  drop_numbers(truth);
  if ((truth.lse_classes & kNumber) == 0) truth.lse_mid = truth.lse_radius = 0;
}

}  // namespace assay
