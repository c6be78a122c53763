// The loss of each key in closed form from the row's sums, held against the acceptance sets.
#include "oracle/ops/attention/lost_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kInSupport = 0x1p-60;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

bool rejected(const JudgedOutput& judged, std::size_t i, double moved) {
  const double centre = judged.centre[i];
  return std::isfinite(centre) && !accepts(judged.sets[i], encode(judged.sets[i].format, centre + moved));
}

/// A row's keys with their weights over the whole denominator, the sink's included.
struct Weights {
  std::vector<std::int32_t> keys;
  std::vector<double> p;
  double counted = 1;  ///< what the LSE counts of the denominator
};

bool weigh(const AttentionProblem& problem, const AttentionRow& row, Counterfactual& counterfactual, Weights& out) {
  problem.admissible_keys(row, out.keys);
  out.p = counterfactual.logits(row, out.keys);
  const double sink = problem.sink(row);
  double top = sink, sum = 0;
  for (const double x : out.p) {
    if (!(x < kInf)) return false;
    top = std::max(top, x);
  }
  if (!(top > -kInf) || !(sink < kInf)) return false;
  for (double& x : out.p) sum += x = exp64(x - top);
  if (!(sum > 0)) return false;
  const double denominator = sum + exp64(sink - top);
  for (double& p : out.p) p /= denominator;
  out.counted = problem.params().sink == Sink::kInLse ? 1 : sum / denominator;
  return true;
}

}  // namespace

std::vector<LostKeys> visible_losses(const Problem& raw, const Truth& truth, const JudgedLevel& level, double share) {
  const AttentionProblem problem(raw);
  Counterfactual counterfactual(problem);
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const double unit = problem.params().lse == LseBase::kTwo ? 1 / kLn2 : 1;
  std::vector<LostKeys> all(truth.rows.size());
  Weights w;
  std::vector<double> o(dv);
  for (std::size_t r = 0; r < all.size(); ++r) {
    const AttentionRow& row = problem.rows()[r];
    if (!weigh(problem, row, counterfactual, w)) continue;
    const auto& values = counterfactual.head().v;
    const auto value = [&](std::size_t i) { return values.data() + static_cast<std::size_t>(w.keys[i]) * dv; };
    std::fill(o.begin(), o.end(), 0.0);
    for (std::size_t i = 0; i < w.keys.size(); ++i) {
      if (w.p[i] == 0) continue;
      const double weight = w.p[i] * problem.value_factor(row, w.keys[i]);
      for (std::size_t c = 0; c < dv; ++c) o[c] += weight * value(i)[c];
    }
    LostKeys& out = all[r];
    for (std::size_t i = 0; i < w.keys.size(); ++i) {
      if (!(w.p[i] > kInSupport)) continue;
      const double lost = share * w.p[i], factor = problem.value_factor(row, w.keys[i]), left = 1 - lost;
      bool in_o = false;
      for (std::size_t c = 0; c < dv && !in_o; ++c) {
        const double moved = left > 0 ? lost * (o[c] - factor * value(i)[c]) / left : -o[c];
        in_o = rejected(level.outputs[0], r * dv + c, moved);
      }
      out.keys.push_back(w.keys[i]);
      out.seen_in_o.push_back(in_o);
      const double kept = 1 - lost / w.counted;
      out.seen_in_lse.push_back(level.outputs.size() > 1 &&
                                rejected(level.outputs[1], r, kept > 0 ? unit * log64(kept) : -kInf));
    }
  }
  return all;
}

}  // namespace assay
