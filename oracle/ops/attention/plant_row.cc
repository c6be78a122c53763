// Weights of a row, its most visible key and tile, and the key beyond its edge.
#include "oracle/ops/attention/plant_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int32_t kTile = 64;

ASSAY_HOT void add_scaled(double weight, const double* v, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += weight * v[c];
}

/// max_c |scale v_c - o_c|
ASSAY_HOT double largest_deviation(double scale, const double* v, const double* o, std::size_t n) {
  double largest = 0;
  for (std::size_t c = 0; c < n; ++c) largest = std::max(largest, std::abs(scale * v[c] - o[c]));
  return largest;
}

/// The candidate whose whole loss would move o furthest, by |mean - o| weight / (1 - weight); among equals the
/// heaviest.
class MostVisible {
 public:
  void offer(std::size_t begin, std::size_t end, double weight, double deviation) {
    const double moved = !(weight < 1) ? kInf : weight > 0 ? deviation * weight / (1 - weight) : 0;
    if (moved < farthest_ || (moved == farthest_ && weight <= heaviest_)) return;
    farthest_ = moved, heaviest_ = weight, begin_ = begin, end_ = end;
  }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  double farthest_ = -1, heaviest_ = -1;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace

/// keys_ and p_ from the logits of admissible_; false if there is no softmax.
bool PlantRowReader::weigh(const AttentionRow& row, const std::vector<double>& logits, PlantRow& out) {
  keys_.clear();
  p_.clear();
  const double sink = problem_.sink(row);
  double top = -kInf;
  for (std::size_t i = 0; i < admissible_.size(); ++i) {
    const double x = logits[i];
    if (!(x < kInf)) return false;
    if (x == -kInf) continue;
    keys_.push_back(admissible_[i]);
    p_.push_back(x);
    top = std::max(top, x);
  }
  if (keys_.empty() || !(sink < kInf)) return false;
  top = std::max(top, sink);
  for (double& p : p_) p -= top;
  exp64(p_.data(), p_.data(), p_.size());
  double sum = 0;
  for (const double p : p_) sum += p;
  const double denominator = sum + exp64(sink - top);
  out.log_denominator = top + log64(denominator);
  out.keys = sum / denominator;
  out.sink = exp64(sink - top) / denominator;
  for (double& p : p_) p /= denominator;
  return true;
}

/// Adds sum p_j f_j v_j over keys_[begin, end) and returns sum p_j.
double PlantRowReader::add_keys(const AttentionRow& row, std::size_t begin, std::size_t end,
                                std::vector<double>& sum) const {
  const double* values = counterfactual_.head().v.data();
  double weight = 0;
  for (std::size_t j = begin; j < end; ++j) {
    weight += p_[j];
    if (p_[j] != 0)
      add_scaled(p_[j] * problem_.value_factor(row, keys_[j]), values + static_cast<std::size_t>(keys_[j]) * dim_v(),
                 dim_v(), sum.data());
  }
  return weight;
}

LostPart PlantRowReader::part(const AttentionRow& row, std::size_t begin, std::size_t end, const PlantRow& sums) const {
  LostPart lost{.first_key = keys_[begin], .last_key = keys_[end - 1], .smaller = std::vector<double>(dim_v(), 0.0)};
  for (std::size_t j = 0; j < keys_.size(); ++j) (j >= begin && j < end ? lost.weight : lost.rest) += p_[j];
  lost.whole_row = begin == 0 && end == keys_.size();
  lost.smaller_is_part = lost.weight <= sums.keys / 2;
  if (lost.smaller_is_part) {
    add_keys(row, begin, end, lost.smaller);
  } else {
    add_keys(row, 0, begin, lost.smaller);
    add_keys(row, end, keys_.size(), lost.smaller);
  }
  return lost;
}

std::optional<std::int32_t> PlantRowReader::edge_key(const AttentionRow& row) const {
  const AttentionParams& p = problem_.params();
  const auto [first, end] = problem_.key_span(row);
  const bool right = (p.causal || p.window_right >= 0) && end < problem_.kv_len(row.batch);
  const std::int64_t key = right ? end : p.window_left >= 0 ? first - 1 : -1;
  if (key < 0 || !problem_.kept_by_data(row, key)) return std::nullopt;
  return static_cast<std::int32_t>(key);
}

std::optional<PlantRow> PlantRowReader::read(const AttentionRow& row) {
  problem_.admissible_keys(row, admissible_);
  const std::optional<std::int32_t> edge = edge_key(row);
  if (edge) admissible_.push_back(*edge);
  const std::vector<double> logits = counterfactual_.logits(row, admissible_);
  if (edge) admissible_.pop_back();
  PlantRow out;
  if (!weigh(row, logits, out)) return std::nullopt;
  MostVisible key, tile;
  std::vector<double> tile_sum(dim_v());
  std::vector<std::pair<std::size_t, std::size_t>> tiles;
  std::vector<std::vector<double>> tile_sums;
  out.o.assign(dim_v(), 0.0);
  for (std::size_t begin = 0, end; begin < keys_.size(); begin = end) {
    for (end = begin + 1; end < keys_.size() && keys_[end] / kTile == keys_[begin] / kTile;) ++end;
    std::fill(tile_sum.begin(), tile_sum.end(), 0.0);
    add_keys(row, begin, end, tile_sum);
    add_scaled(1, tile_sum.data(), dim_v(), out.o.data());
    tiles.emplace_back(begin, end);
    tile_sums.push_back(tile_sum);
  }
  const double* values = counterfactual_.head().v.data();
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const auto [begin, end] = tiles[t];
    double weight = 0;
    for (std::size_t j = begin; j < end; ++j) {
      weight += p_[j];
      if (p_[j] == 0) continue;
      key.offer(j, j + 1, p_[j],
                largest_deviation(problem_.value_factor(row, keys_[j]),
                                  values + static_cast<std::size_t>(keys_[j]) * dim_v(), out.o.data(), dim_v()));
    }
    if (weight > 0)
      tile.offer(begin, end, weight, largest_deviation(1 / weight, tile_sums[t].data(), out.o.data(), dim_v()));
  }
  if (key.end() == 0) return std::nullopt;  // every weight is below fp64's range
  out.key = part(row, key.begin(), key.end(), out);
  out.tile = part(row, tile.begin(), tile.end(), out);
  if (!edge || !(logits.back() < kInf)) return out;
  out.edge = {.key = *edge, .x = logits.back(), .v = std::vector<double>(dim_v())};
  problem_.load_v(row.batch, problem_.kv_head(row.head), *edge, out.edge->v);
  for (double& v : out.edge->v) {
    v *= problem_.value_factor(row, *edge);
    if (!std::isfinite(v)) v = std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

std::optional<PlantRow> PlantRowReader::read_scaled(const AttentionRow& row, double gain) {
  problem_.admissible_keys(row, admissible_);
  const std::vector<double> logits = counterfactual_.logits(row, admissible_, {.gain = gain});
  PlantRow out;
  if (!weigh(row, logits, out)) return std::nullopt;
  out.o.assign(dim_v(), 0.0);
  std::vector<double> tile_sum(dim_v());
  for (std::size_t begin = 0, end; begin < keys_.size(); begin = end) {  // in the order of `read`
    for (end = begin + 1; end < keys_.size() && keys_[end] / kTile == keys_[begin] / kTile;) ++end;
    std::fill(tile_sum.begin(), tile_sum.end(), 0.0);
    add_keys(row, begin, end, tile_sum);
    add_scaled(1, tile_sum.data(), dim_v(), out.o.data());
  }
  return out;
}

}  // namespace assay
