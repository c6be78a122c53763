// The online recurrence in plain fp64, without a radius, since it is only compared with acceptance sets.
#include "oracle/ops/softmax/counterfactual.h"

#include <algorithm>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr std::int64_t kTile = 64;

WeightRange heaviest(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite,
                     std::int64_t extent) {
  const std::vector<double> y = softmax_under(params, row, finite, {}).y;
  WeightRange best;
  for (std::int64_t first = 0; first < params.n; first += extent) {
    WeightRange range{first, std::min(params.n, first + extent), 0};
    for (std::int64_t j = first; j < range.end; ++j)
      if (const double share = y[static_cast<std::size_t>(j)]; share > 0) range.weight += share;
    if (range.weight > best.weight) best = range;
  }
  return best;
}

}  // namespace

WeightRange heaviest_key(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite) {
  return heaviest(params, row, finite, 1);
}

WeightRange heaviest_tile(const SoftmaxParams& params, const SoftmaxRow& row, const std::vector<std::int32_t>& finite) {
  return heaviest(params, row, finite, kTile);
}

SoftmaxValues softmax_under(const SoftmaxParams& p, const SoftmaxRow& row, const std::vector<std::int32_t>& finite,
                            const SoftmaxChange& change) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t tile = p.steps > 0 ? p.steps : kTile;
  SoftmaxValues out;
  out.y.assign(static_cast<std::size_t>(p.n), kNone);
  std::vector<double> t;
  for (std::int32_t i : finite)
    t.push_back(change.scale * row.linear[static_cast<std::size_t>(i)] + row.bias[static_cast<std::size_t>(i)]);
  const auto key = [&](std::size_t k) { return row.key[static_cast<std::size_t>(finite[k])]; };
  const auto weight = [&](std::size_t k, double m) {
    return exp64(t[k] - m) * (key(k) >= change.weak_first && key(k) < change.weak_end ? change.weak : 1.0);
  };
  double m = kNone, l = 0, ghost = 0;  // l without the ghosts, whose share is exp(-m) of the moment
  for (std::size_t at = 0, step = 0; static_cast<std::int64_t>(step) * tile < p.n; ++step) {
    const std::size_t first = at;
    double largest = first > 0 ? m : -std::numeric_limits<double>::infinity();
    for (; at < t.size() && key(at) < static_cast<std::int64_t>(step + 1) * tile; ++at)
      largest = std::max(largest, t[at]);
    if (at > first) {
      const double alpha = first > 0 ? exp64(m - largest) : 0;
      l *= alpha + change.stale * (1 - alpha);
      for (std::size_t k = first; k < at; ++k) l += weight(k, largest);
      m = largest;
      ghost = change.ghost * exp64(-m);
    }
    if (p.steps == 0) continue;
    out.m.push_back(m);
    out.l.push_back(at > 0 ? l + ghost : kNone);
  }
  for (std::size_t k = 0; k < t.size(); ++k)
    out.y[static_cast<std::size_t>(key(k))] = change.gain * weight(k, m) / (l + ghost);
  out.lse = m + log64(l + ghost);
  if (p.lse == LseBase::kTwo) out.lse /= 0x1.62e42fefa39efp-1;
  return out;
}

}  // namespace assay
