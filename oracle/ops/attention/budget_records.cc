// How often the running maximum of a row may rise, and how deep below the largest logit it may stand on the way.
//
// In depths D_j = x_max - x_j with computed logits off by at most E_j: key j may set a record after the keys of a set S
// only if D_j - E_j <= min over S of D_k + E_k. `low` and `high` hold the two ends, or both hold D with 2 E as slack
// where one E serves all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/ops/attention/lanes.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kOneErrorForAll = 0x1p-8;  // a common E of this size adds few keys that cannot really set a record
constexpr std::size_t kBlock = 64;          // keys skipped together when none of them can

ASSAY_HOT double smallest(const double* values, std::size_t n) {
  double least[kLanes];
  for (double& l : least) l = kInf;
  for_lanes(n, [&](std::size_t l, std::size_t j) { least[l] = values[j] < least[l] ? values[j] : least[l]; });
  return lane_min(least);
}

ASSAY_HOT double largest(const double* values, std::size_t n) {
  double most[kLanes] = {};
  for_lanes(n, [&](std::size_t l, std::size_t j) { most[l] = values[j] > most[l] ? values[j] : most[l]; });
  return lane_max(most);
}

/// Possible records of a walk over all n, the first one included.
double walk(const double* low, const double* high, std::size_t n, double slack, bool forward) {
  double records = 0, floor = kInf;
  const std::size_t blocks = (n + kBlock - 1) / kBlock;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t first = (forward ? b : blocks - 1 - b) * kBlock, count = std::min(kBlock, n - first);
    if (smallest(low + first, count) > floor + slack) {
      if (low != high) floor = std::min(floor, smallest(high + first, count));
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t j = first + (forward ? i : count - 1 - i);
      if (low[j] <= floor + slack) ++records;
      floor = std::min(floor, high[j]);
    }
  }
  return records;
}

/// The most possible records of a walk that starts anywhere. Going back from the end, `stack` holds the low ends of
/// those keys that may be records of a walk from here, the least promising on top: a key leaves for good when an
/// earlier one certainly exceeds it.
double most_records(const double* low, const double* high, std::size_t n, double slack, bool forward) {
  std::vector<double> stack;
  std::size_t most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t j = forward ? n - 1 - i : i;
    while (!stack.empty() && stack.back() > high[j] + slack) stack.pop_back();
    std::size_t at = stack.size();
    stack.push_back(low[j]);
    for (; at > 0 && stack[at - 1] > low[j]; --at) stack[at] = stack[at - 1];
    stack[at] = low[j];
    most = std::max(most, stack.size());
  }
  return static_cast<double>(most);
}

}  // namespace

bool RowBudget::contiguous() const { return row_.keys.back() - row_.keys.front() + 1 == static_cast<std::int32_t>(n_); }

bool RowBudget::single_tile() const {
  if (listed()) return arith_.tile_n >= params_.list_len && arith_.splits == 1;
  return arith_.tile_n > 0 && arith_.splits == 1 &&
         row_.keys.front() / arith_.tile_n == row_.keys.back() / arith_.tile_n;
}

double RowBudget::tiles() const {
  constexpr int kSmallestTile = 16;  // of kernels that normalise at every step and do not say how often
  return pieces(listed() ? params_.list_len : row_.operands->keys, arith_.tile_n > 0 ? arith_.tile_n : kSmallestTile);
}

/// From the shallowest key of each run of keys, where tiles are made of runs.
void RowBudget::count_records_by_sums() {
  LogError before = errors_.accumulation;
  before += errors_.qk;
  before += errors_.logit;
  const double linear = std::abs(row_.max_logit) + row_.sums.deepest;
  const double error = before.magnitude * magnitude_factor_ * row_.score_hull + before.linear * linear +
                       before.depth * row_.sums.deepest + before.constant;
  if (arith_.tile_n <= 0 || arith_.tile_n % KeySums::kBlock != 0 || before.capped > 0 || listed() || !(error <= kOneErrorForAll)) {
    needs_keys_ = true;
    return;
  }
  const double common = error * kSlack;
  const std::int32_t first_run = row_.keys.front() / KeySums::kBlock, runs = arith_.tile_n / KeySums::kBlock;
  std::vector<double> tile;
  std::int32_t last = -1;
  for (std::size_t run = 0; run < row_.sums.shallowest.size(); ++run) {
    const std::int32_t of = (first_run + static_cast<std::int32_t>(run)) / runs;
    if (of != last) tile.push_back(kInf);
    last = of;
    tile.back() = std::min(tile.back(), row_.sums.shallowest[run]);
  }
  double records = 0, deepest = 0;
  for (const bool forward : {true, false}) {
    if (arith_.tile_order == (forward ? TileOrder::kBackward : TileOrder::kForward)) continue;
    records = std::max(records, split() ? most_records(tile.data(), tile.data(), tile.size(), 2 * common, forward)
                                        : walk(tile.data(), tile.data(), tile.size(), 2 * common, forward));
    deepest = std::max(deepest, forward ? tile.front() : tile.back());
  }
  if (split() || own_tile()) deepest = largest(tile.data(), tile.size());
  rescales_ += std::max(0.0, records - 1);
  largest_max_ = std::max(largest_max_, std::abs(row_.max_logit - deepest) + common + weight_.lazy * kLn2);
}

void RowBudget::count_records() {
  rescales_ = has_sink() ? 1 : 0;  // its maximum may be the first or the last
  largest_max_ = top_;
  if (!running()) return;
  if (!row_.described) return count_records_by_sums();
  const double* depth = row_.depth.data();
  double common = 0, deepest = 0;
  std::vector<double> low, high;
  if (!row_.uniform) {
    LogError before = errors_.accumulation;
    before += errors_.qk;
    before += errors_.logit;
    double linear = 0;
    for (std::size_t j = 0; j < n_ && before.linear + before.capped > 0; ++j)
      linear = std::max(linear, std::abs(row_.linear[j]));
    const double one = before.magnitude * magnitude_factor_ * largest(magnitude_, n_) +
                       (before.linear + before.capped) * linear + before.depth * largest(depth, n_) + before.constant;
    if (one <= kOneErrorForAll) {
      common = one * kSlack;
    } else {
      low.resize(n_), high.resize(n_);
      for (std::size_t j = 0; j < n_; ++j) {
        const double error =
            (before.magnitude * magnitude_factor_ * magnitude_[j] +
             (before.linear + before.capped) * std::abs(row_.linear[j]) + before.depth * depth[j] + before.constant) *
            kSlack;
        low[j] = depth[j] - error, high[j] = depth[j] + error;
      }
    }
  }
  const double* low_end = low.empty() ? depth : low.data();
  const double* high_end = low.empty() ? depth : high.data();
  const double slack = low.empty() ? 2 * common : 0;
  double records = 0;

  if (listed()) {
    // Keys come in the list's order.
    const double tiles = arith_.tile_n > 0 ? pieces(params_.list_len, arith_.tile_n) : static_cast<double>(n_);
    records = std::min(static_cast<double>(n_), tiles);
    deepest = largest(high_end, n_);
  } else {
    std::vector<double> tile_low, tile_high;
    std::size_t n = n_;
    if (arith_.tile_n > 1) {
      for (std::size_t j = 0; j < n_;) {
        const std::int32_t end = (row_.keys[j] / arith_.tile_n + 1) * arith_.tile_n;
        std::size_t to = std::min(n_, j + static_cast<std::size_t>(end - row_.keys[j]));
        if (row_.keys[to - 1] >= end)
          to = static_cast<std::size_t>(
              std::lower_bound(row_.keys.begin() + static_cast<std::ptrdiff_t>(j), row_.keys.end(), end) -
              row_.keys.begin());
        tile_low.push_back(smallest(low_end + j, to - j));
        if (!low.empty()) tile_high.push_back(smallest(high_end + j, to - j));
        j = to;
      }
      low_end = tile_low.data();
      high_end = low.empty() ? tile_low.data() : tile_high.data();
      n = tile_low.size();
    }
    for (const bool forward : {true, false}) {
      // With unknown tiles the cut into tiles is free, and so is the order unless it is declared with it.
      if (arith_.tile_n > 0 && arith_.tile_order == (forward ? TileOrder::kBackward : TileOrder::kForward)) continue;
      records = std::max(records, split() ? most_records(low_end, high_end, n, slack, forward)
                                          : walk(low_end, high_end, n, slack, forward));
      deepest = std::max(deepest, high_end[forward ? 0 : n - 1]);
    }
    if (split() || own_tile()) deepest = largest(high_end, n);
  }
  rescales_ += std::max(0.0, records - 1);
  const double error = common + weight_.lazy * kLn2;
  largest_max_ = std::max(largest_max_, std::abs(row_.max_logit - deepest) + error);
}

}  // namespace assay
