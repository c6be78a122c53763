// With p_j the weights of a row, w = sum p_j and n = sum p_j v_j over a run: without it o' - o = (w o - n) / (1 - w)
// and the LSE falls by -log(1 - w). All runs of blocks are tried, then the ends are moved key by key.
#include "failure_catalog/dropped_keys/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr std::size_t kBlocks = 48;
constexpr std::size_t kMostProducts = std::size_t{1} << 22;  // keys by channels

/// Sums before each key: w and n over keys [0, i).
class Sums {
 public:
  Sums(AttentionView& view, std::size_t row)
      : keys_(view.keys(row)), dv_(static_cast<std::size_t>(view.problem.params().dim_v)) {
    const AttentionRow& at = view.row(row);
    std::vector<double> p = view.counterfactual.logits(at, keys_);
    double m = view.problem.sink(at);
    for (const double x : p) m = std::max(m, x);
    double all = std::isfinite(view.problem.sink(at)) ? exp64(view.problem.sink(at) - m) : 0;
    for (double& x : p) all += x = exp64(x - m);
    const HeadOperands& head = view.counterfactual.head();
    w_.assign(keys_.size() + 1, 0);
    n_.assign((keys_.size() + 1) * dv_, 0);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const double weight = p[i] / all, factor = view.problem.value_factor(at, keys_[i]);
      w_[i + 1] = w_[i] + weight;
      for (std::size_t c = 0; c < dv_; ++c)
        n_[(i + 1) * dv_ + c] =
            n_[i * dv_ + c] + weight * factor * head.v[static_cast<std::size_t>(keys_[i]) * dv_ + c];
    }
    log_base_ = view.problem.params().lse == LseBase::kTwo ? 0x1.62e42fefa39efp-1 : 1.0;
  }

  const std::vector<std::int32_t>& keys() const { return keys_; }

  /// Squared residual, in noise, if keys [a, b) of the list were missing.
  double cost(const Trial::Errors& e, std::size_t a, std::size_t b) const {
    const double w = w_[b] - w_[a], left = 1 - w;
    if (!(left > 1e-12)) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t c = 0; c < dv_ && c < e.o.size(); ++c) {
      if (std::isnan(e.o[c])) continue;
      const double o = n_[keys_.size() * dv_ + c], gone = n_[b * dv_ + c] - n_[a * dv_ + c];
      const double r = (e.o[c] - (w * o - gone) / left) / e.o_unit[c];
      sum += r * r;
    }
    if (!std::isnan(e.lse)) {
      const double r = (e.lse - log64(left) / log_base_) / e.lse_unit;
      sum += r * r;
    }
    return sum;
  }

 private:
  std::vector<std::int32_t> keys_;
  std::size_t dv_;
  std::vector<double> w_, n_;
  double log_base_ = 1;
};

}  // namespace

std::optional<std::pair<std::int32_t, std::int32_t>> missing_run(const Scene& scene, std::size_t n) {
  AttentionView& view = *scene.attention();
  const std::size_t row = scene.trial().rows()[n];
  const std::size_t count = view.keys(row).size();
  if (count < 2 || count * static_cast<std::size_t>(view.problem.params().dim_v) > kMostProducts) return std::nullopt;
  const Sums sums(view, row);
  const Trial::Errors errors = scene.trial().errors(n);
  const std::size_t block = (count + kBlocks - 1) / kBlocks;
  std::size_t a = 0, b = 1;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](std::size_t from, std::size_t to) {
    if (from >= to || to > count) return;
    if (const double c = sums.cost(errors, from, to); c < least) least = c, a = from, b = to;
  };
  for (std::size_t from = 0; from < count; from += block)
    for (std::size_t to = from + block; to < count + block; to += block) consider(from, std::min(to, count));
  for (std::size_t i = 0; i < count; ++i) consider(i, i + 1);
  for (int round = 0; round < 2; ++round) {
    const std::size_t from = a, to = b;
    for (std::size_t x = from > block ? from - block : 0; x <= std::min(from + block, count); ++x) consider(x, to);
    const std::size_t best = a;
    for (std::size_t y = to > block ? to - block : 0; y <= std::min(to + block, count); ++y) consider(best, y);
  }
  return std::pair(sums.keys()[a], sums.keys()[b - 1]);
}

}  // namespace assay
