// The oracle's own walk over lengths, heads, masks, biases and factors.
#include "oracle/ops/attention/problem.h"

#include <algorithm>
#include <limits>

#include "oracle/ops/attention/decode_run.h"

namespace assay {

AttentionProblem::AttentionProblem(const Problem& problem)
    : params_(attention_params(problem.params)), keys_(params_, problem), queries_(query_sequences(params_, problem)) {
  q_ = input_view(problem, "q");
  mask_ = input_view(problem, "mask");
  slopes_ = input_view(problem, "slopes");
  sink_ = input_view(problem, "sink");
  seg_q_ = input_view(problem, "seg_q");
  seg_kv_ = input_view(problem, "seg_kv");
  q_scale_ = input_view(problem, "q_scale");
  k_scale_ = input_view(problem, "k_scale");
  v_scale_ = input_view(problem, "v_scale");
  for (const TensorLayout& layout : problem.outputs) (layout.role == "o" ? o_ : lse_) = &layout;
  if (const TensorView rows = input_view(problem, "rows"); rows.storage != nullptr) {
    for (std::int64_t r = 0; r < rows.extent(0); ++r) {
      const std::int64_t b = entry_within(rows, {r, 0}, 0, params_.batch - 1, "a sequence of the case");
      const std::int64_t h = entry_within(rows, {r, 1}, 0, params_.heads_q - 1, "a query head of the case");
      rows_.push_back({b, h, entry_within(rows, {r, 2}, 0, q_len(b) - 1, "a query of the sequence")});
    }
  } else {
    for (std::int64_t b = 0; b < params_.batch; ++b)
      for (std::int64_t h = 0; h < params_.heads_q; ++h)
        for (std::int64_t i = 0; i < q_len(b); ++i) rows_.push_back({b, h, i});
  }
  if (params_.data_mask == DataMask::kList) check_lists();
}

void AttentionProblem::check_lists() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;  // key, index in the list
  for (const AttentionRow& row : rows_) {
    entries.clear();
    for (std::int64_t n = 0; n < params_.list_len; ++n)
      entries.emplace_back(static_cast<std::int64_t>(mask_.value(mask_.element(row.batch, row.head, row.query, n))), n);
    std::sort(entries.begin(), entries.end());
    for (std::size_t n = 1; n < entries.size(); ++n)
      if (const auto& [key, index] = entries[n]; key == entries[n - 1].first && key >= 0 && key < kv_len(row.batch))
        refuse_entry(mask_, {row.batch, row.head, row.query, index}, "the list names this key twice");
  }
}

std::int64_t AttentionProblem::q_len(std::int64_t batch) const {
  return queries_.lens[static_cast<std::size_t>(batch)];
}

std::int64_t AttentionProblem::kv_len(std::int64_t batch) const { return keys_.length(batch); }

std::int64_t AttentionProblem::aligned_position(const AttentionRow& row) const {
  return row.query + (params_.align == Align::kBottomRight ? kv_len(row.batch) - q_len(row.batch) : 0);
}

std::pair<std::int64_t, std::int64_t> AttentionProblem::key_span(const AttentionRow& row) const {
  const std::int64_t position = aligned_position(row);
  std::int64_t first = 0, end = kv_len(row.batch);
  if (params_.causal) end = std::min(end, position + 1);
  if (params_.window_left >= 0)
    first =
        std::max(first, position - params_.window_left + (params_.window_ends == WindowEnds::kLeftExclusive ? 1 : 0));
  if (params_.window_right >= 0) end = std::min(end, position + params_.window_right + 1);
  return {first, std::max(first, end)};
}

bool AttentionProblem::masks_inside() const {
  return params_.segments || params_.data_mask == DataMask::kBool || params_.data_mask == DataMask::kBlock ||
         params_.data_mask == DataMask::kList;
}

bool AttentionProblem::same_segment(const AttentionRow& row, std::int64_t key) const {
  return !params_.segments ||
         seg_q_.code(seg_q_.element(row.batch, row.query)) == seg_kv_.code(seg_kv_.element(row.batch, key));
}

bool AttentionProblem::kept_by_data(const AttentionRow& row, std::int64_t key) const {
  if (!same_segment(row, key)) return false;
  switch (params_.data_mask) {
    case DataMask::kNone:
    case DataMask::kAdditive: return true;
    case DataMask::kBool: return mask_.code(mask_.element(row.batch, row.head, row.query, key)) != 0;
    case DataMask::kBlock:
      return mask_.code(mask_.element(row.batch, row.head, row.query / params_.block_q, key / params_.block_kv)) != 0;
    case DataMask::kList: break;
  }
  for (std::int64_t n = 0; n < params_.list_len; ++n)
    if (static_cast<std::int64_t>(mask_.value(mask_.element(row.batch, row.head, row.query, n))) == key) return true;
  return false;
}

bool AttentionProblem::admissible(const AttentionRow& row, std::int64_t key) const {
  const auto [first, end] = key_span(row);
  return key >= first && key < end && kept_by_data(row, key);
}

void AttentionProblem::listed_keys(const AttentionRow& row, std::vector<std::int32_t>& keys) const {
  for (std::int64_t n = 0; n < params_.list_len; ++n)
    keys.push_back(static_cast<std::int32_t>(mask_.code(mask_.element(row.batch, row.head, row.query, n))));
  std::sort(keys.begin(), keys.end());
  const std::pair<std::int64_t, std::int64_t> span = key_span(row);
  std::erase_if(keys,
                [&](std::int32_t key) { return key < span.first || key >= span.second || !same_segment(row, key); });
}

void AttentionProblem::admissible_keys(const AttentionRow& row, std::vector<std::int32_t>& keys) const {
  keys.clear();
  if (params_.data_mask == DataMask::kList) return listed_keys(row, keys);
  const auto [first, end] = key_span(row);
  if (first >= end) return;
  const auto collect = [&, first = first, end = end](const auto& kept) {
    keys.resize(static_cast<std::size_t>(end - first));
    std::size_t n = 0;
    for (std::int64_t j = first; j < end; ++j) {
      keys[n] = static_cast<std::int32_t>(j);
      n += kept(j) ? 1 : 0;
    }
    keys.resize(n);
  };
  if (!masks_inside()) return collect([](std::int64_t) { return true; });
  if (params_.data_mask != DataMask::kBool || params_.segments)
    return collect([&](std::int64_t j) { return kept_by_data(row, j); });
  const std::int64_t start = mask_.element(row.batch, row.head, row.query, 0),
                     step = mask_.element(row.batch, row.head, row.query, 1) - start;
  collect([&](std::int64_t j) { return mask_.code(start + j * step) != 0; });
}

double AttentionProblem::alibi(const AttentionRow& row, std::int64_t key) const {
  std::int64_t steps = 0;
  switch (params_.alibi) {
    case Alibi::kNone: return 0;
    case Alibi::kDistance: {
      const std::int64_t distance = aligned_position(row) - key;
      steps = distance < 0 ? distance : -distance;
      break;
    }
    case Alibi::kKey: steps = key; break;
    case Alibi::kDiagonal: steps = key - row.query; break;
    case Alibi::kLast: steps = key - kv_len(row.batch) + 1;
  }
  const double slope =
      slopes_.value(params_.slopes_per_batch ? slopes_.element(row.batch, row.head) : slopes_.element(row.head));
  return slope * static_cast<double>(steps);  // 24 and at most 25 bits
}

double AttentionProblem::additive(const AttentionRow& row, std::int64_t key) const {
  return params_.data_mask == DataMask::kAdditive ? mask_.value(mask_.element(row.batch, row.head, row.query, key))
                                                  : 0.0;
}

double AttentionProblem::sink(const AttentionRow& row) const {
  return params_.sink == Sink::kNone ? -std::numeric_limits<double>::infinity() : sink_.value(sink_.element(row.head));
}

double AttentionProblem::descale(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t kv_head,
                                 std::int64_t position) const {
  switch (params_.descale) {
    case Descale::kNone: break;
    case Descale::kTensor: return t.value(t.element(0));
    case Descale::kHead: return t.value(t.element(batch, kv_head));
    case Descale::kBlock: return t.value(t.element(batch, head, position / params_.scale_block));
  }
  return 1;
}

AttentionProblem::Factors AttentionProblem::factors(const AttentionRow& row, std::int64_t key) const {
  const std::int64_t group = kv_head(row.head);
  return {static_cast<double>(params_.scale) * descale(q_scale_, row.batch, row.head, group, row.query),
          descale(k_scale_, row.batch, group, group, key)};
}

double AttentionProblem::value_factor(const AttentionRow& row, std::int64_t key) const {
  return descale(v_scale_, row.batch, kv_head(row.head), kv_head(row.head), key);
}

std::int64_t AttentionProblem::query_element(const TensorLayout& t, const AttentionRow& row) const {
  const TensorView view{&t, nullptr};
  if (params_.batching == Batching::kPacked)
    return view.element(queries_.starts[static_cast<std::size_t>(row.batch)] + row.query, row.head);
  return view.element(row.batch, row.head, row.query);
}

void AttentionProblem::load_q(const AttentionRow& row, std::span<double> q) const {
  decode_run(q_, query_element(*q_.layout, row), q_.layout->strides.back(), q);
}
void AttentionProblem::load_k(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> k) const {
  keys_.load_k(batch, kv_head, key, k);
}
void AttentionProblem::load_v(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> v) const {
  keys_.load_v(batch, kv_head, key, v);
}

std::int64_t AttentionProblem::o_element(const AttentionRow& row, std::int64_t channel) const {
  return query_element(*o_, row) + channel * o_->strides.back();
}

std::int64_t AttentionProblem::lse_element(const AttentionRow& row) const { return query_element(*lse_, row); }

}  // namespace assay
