// The oracle's own walk over lengths, heads and masks.
#include "oracle/ops/attention/problem.h"

#include <algorithm>

namespace assay {

AttentionProblem::AttentionProblem(const Problem& problem) : params_(attention_params(problem.params)) {
  TensorView rows;
  for (const Tensor& tensor : problem.inputs) {
    const TensorView view = tensor.view();
    if (tensor.layout.role == "q") q_ = view;
    if (tensor.layout.role == "k") k_ = view;
    if (tensor.layout.role == "v") v_ = view;
    if (tensor.layout.role == "mask") mask_ = view;
    if (tensor.layout.role == "rows") rows = view;
  }
  for (const TensorLayout& layout : problem.outputs) (layout.role == "o" ? o_ : lse_) = &layout;
  for (std::int64_t b = 0, tq = 0, tk = 0; b < params_.batch; ++b) {
    starts_q_.push_back(tq);
    starts_kv_.push_back(tk);
    tq += q_len(b);
    tk += kv_len(b);
  }
  if (rows.storage != nullptr) {
    const auto at = [&](std::int64_t r, std::int64_t c) { return static_cast<std::int64_t>(rows.value(r * 3 + c)); };
    for (std::int64_t r = 0; r < rows.extent(0); ++r) rows_.push_back({at(r, 0), at(r, 1), at(r, 2)});
  } else {
    for (std::int64_t b = 0; b < params_.batch; ++b)
      for (std::int64_t h = 0; h < params_.heads_q; ++h)
        for (std::int64_t i = 0; i < q_len(b); ++i) rows_.push_back({b, h, i});
  }
}

std::int64_t AttentionProblem::q_len(std::int64_t batch) const {
  return params_.batching == Batching::kDense ? params_.len_q : params_.lens_q[static_cast<std::size_t>(batch)];
}

std::int64_t AttentionProblem::kv_len(std::int64_t batch) const {
  return params_.batching == Batching::kDense ? params_.len_kv : params_.lens_kv[static_cast<std::size_t>(batch)];
}

bool AttentionProblem::admissible(const AttentionRow& row, std::int64_t key) const {
  const std::int64_t keys = kv_len(row.batch);
  if (key < 0 || key >= keys) return false;
  const std::int64_t position =
      row.query + (params_.align == Align::kBottomRight ? keys - q_len(row.batch) : std::int64_t{0});
  if (params_.causal && key > position) return false;
  if (params_.window_left >= 0) {
    const std::int64_t first =
        position - params_.window_left + (params_.window_ends == WindowEnds::kLeftExclusive ? 1 : 0);
    if (key < first) return false;
  }
  if (params_.window_right >= 0 && key > position + params_.window_right) return false;
  if (params_.data_mask == DataMask::kBool && mask_.code(mask_.element(row.batch, row.head, row.query, key)) == 0)
    return false;
  return true;
}

void AttentionProblem::admissible_keys(const AttentionRow& row, std::vector<std::int32_t>& keys) const {
  keys.clear();
  for (std::int64_t j = 0; j < kv_len(row.batch); ++j)
    if (admissible(row, j)) keys.push_back(static_cast<std::int32_t>(j));
}

double AttentionProblem::bias(const AttentionRow& row, std::int64_t key) const {
  return has_bias() ? mask_.value(mask_.element(row.batch, row.head, row.query, key)) : 0.0;
}

std::int64_t AttentionProblem::element(const TensorView& t, const std::vector<std::int64_t>& starts,
                                       std::int64_t batch, std::int64_t head, std::int64_t row) const {
  if (params_.batching == Batching::kPacked)
    return t.element(starts[static_cast<std::size_t>(batch)] + row, head);
  return t.element(batch, head, row);
}

void AttentionProblem::load(const TensorView& t, std::int64_t first, std::span<double> out) const {
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = t.value(first + static_cast<std::int64_t>(c));
}

void AttentionProblem::load_q(const AttentionRow& row, std::span<double> q) const {
  load(q_, element(q_, starts_q_, row.batch, row.head, row.query), q);
}
void AttentionProblem::load_k(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> k) const {
  load(k_, element(k_, starts_kv_, batch, kv_head, key), k);
}
void AttentionProblem::load_v(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> v) const {
  load(v_, element(v_, starts_kv_, batch, kv_head, key), v);
}

std::int64_t AttentionProblem::o_element(const AttentionRow& row, std::int64_t channel) const {
  return element(TensorView{o_, nullptr}, starts_q_, row.batch, row.head, row.query) +
         channel * o_->strides.back();
}

std::int64_t AttentionProblem::lse_element(const AttentionRow& row) const {
  const TensorView lse{lse_, nullptr};
  if (params_.batching == Batching::kPacked)
    return lse.element(starts_q_[static_cast<std::size_t>(row.batch)] + row.query, row.head);
  return lse.element(row.batch, row.head, row.query);
}

}  // namespace assay
