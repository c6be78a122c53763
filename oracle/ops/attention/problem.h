// One attention problem as the oracle reads it: judged rows, admissible keys, exact operand values.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

struct AttentionRow {
  std::int64_t batch = 0, head = 0, query = 0;
};

/// Non-owning; the Problem must outlive it. Used by fast.cc and reference.cc; kernels and the independent check have their own.
class AttentionProblem {
 public:
  explicit AttentionProblem(const Problem& problem);

  const AttentionParams& params() const { return params_; }
  const std::vector<AttentionRow>& rows() const { return rows_; }  ///< judged rows, in (b, h, i) order
  std::int64_t q_len(std::int64_t batch) const;
  std::int64_t kv_len(std::int64_t batch) const;
  std::int64_t kv_head(std::int64_t head) const { return head / (params_.heads_q / params_.heads_kv); }

  /// Key j may take part in the row by length, causality, window, segment and the masks that are structure. An additive -inf is
  /// data, not structure.
  bool admissible(const AttentionRow& row, std::int64_t key) const;
  /// Admissible keys in ascending order.
  void admissible_keys(const AttentionRow& row, std::vector<std::int32_t>& keys) const;
  /// [first, end) that length, causality and window leave; `admissible` can only be false inside it if `masks_inside()`.
  std::pair<std::int64_t, std::int64_t> key_span(const AttentionRow& row) const;
  bool masks_inside() const;

  /// scale q_scale k_scale_j: y_j = factor s_j. The product of three fp32 numbers, rounded at most once.
  double score_factor(const AttentionRow& row, std::int64_t key) const;
  bool same_factor_for_all_keys() const { return params_.descale != Descale::kBlock; }
  /// ALiBi's and the additive mask's share of the logit, rounded at most once; 0 without either.
  double bias(const AttentionRow& row, std::int64_t key) const;
  bool has_bias() const { return params_.data_mask == DataMask::kAdditive || params_.alibi != Alibi::kNone; }
  /// The sink's logit, as stored; -inf without one.
  double sink(const AttentionRow& row) const;
  /// v_scale_j, exact: an fp32 number.
  double value_factor(const AttentionRow& row, std::int64_t key) const;
  bool has_value_factor() const { return params_.descale != Descale::kNone; }

  void load_q(const AttentionRow& row, std::span<double> q) const;                                ///< [d]
  void load_k(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> k) const;  ///< [d]
  void load_v(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::span<double> v) const;  ///< [dv]

  /// Storage positions of a row's outputs.
  std::int64_t o_element(const AttentionRow& row, std::int64_t channel) const;
  std::int64_t lse_element(const AttentionRow& row) const;
  const TensorLayout& o_layout() const { return *o_; }
  const TensorLayout* lse_layout() const { return lse_; }  ///< null if lse=none

 private:
  std::int64_t element(const TensorView& t, const std::vector<std::int64_t>& starts, std::int64_t batch,
                       std::int64_t head, std::int64_t row) const;
  void load(const TensorView& t, std::int64_t first, std::span<double> out) const;

  AttentionParams params_;
  TensorView q_, k_, v_, mask_;
  const TensorLayout* o_ = nullptr;
  const TensorLayout* lse_ = nullptr;
  std::vector<std::int64_t> starts_q_, starts_kv_;  ///< packed: first token of each sequence
  std::vector<AttentionRow> rows_;
};

}  // namespace assay
