// One attention problem as the oracle reads it: judged rows, admissible keys, exact operand values.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"
#include "oracle/ops/attention/key_store.h"

namespace assay {

struct AttentionRow {
  std::int64_t batch = 0, head = 0, query = 0;
};

/// Non-owning; the Problem must outlive it. Used by fast.cc and reference.cc; kernels and the independent check have their own.
/// Lengths, tables, scales, slopes and so on are read from the problem's tensors.
class AttentionProblem {
 public:
  /// Throws InputError naming tensor, index and value where an index tensor points outside what it indexes. Entries that no
  /// kernel may read (behind a sequence's last page, or its last position) are never looked at.
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
  /// Segments and data masks, for any key of the sequence, inside the span or not, admit it.
  bool kept_by_data(const AttentionRow& row, std::int64_t key) const;

  /// scale q_scale k_scale_j: y_j = factor s_j. The product of three fp32 numbers, rounded at most once.
  double score_factor(const AttentionRow& row, std::int64_t key) const {
    const Factors f = factors(row, key);
    return f.scale_q * f.k;
  }
  bool same_factor_for_all_keys() const { return params_.descale != Descale::kBlock; }
  /// The same in two exact parts: scale q_scale, which fp64 holds, and k_scale_j.
  struct Factors {
    double scale_q = 1, k = 1;
  };
  Factors factors(const AttentionRow& row, std::int64_t key) const;
  /// ALiBi's and the additive mask's share of the logit, rounded at most once; 0 without either.
  double bias(const AttentionRow& row, std::int64_t key) const { return alibi(row, key) + additive(row, key); }
  /// The two shares, each exact.
  double alibi(const AttentionRow& row, std::int64_t key) const;
  double additive(const AttentionRow& row, std::int64_t key) const;
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
  std::int64_t aligned_position(const AttentionRow& row) const;
  bool same_segment(const AttentionRow& row, std::int64_t key) const;
  void listed_keys(const AttentionRow& row, std::vector<std::int32_t>& keys) const;
  /// Element (b, h, i) of q or o.
  std::int64_t query_element(const TensorLayout& t, const AttentionRow& row) const;
  /// One of q_scale, k_scale, v_scale: for `head` of that tensor in descale=block, and its kv head else.
  double descale(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t kv_head, std::int64_t position) const;
  /// A key listed twice has no agreed meaning (some kernels would count it twice): an InputError.
  void check_lists() const;

  AttentionParams params_;
  KeyStore keys_;
  Sequences queries_;
  TensorView q_, mask_, slopes_, sink_, seg_q_, seg_kv_, q_scale_, k_scale_, v_scale_;
  const TensorLayout* o_ = nullptr;
  const TensorLayout* lse_ = nullptr;
  std::vector<AttentionRow> rows_;
};

}  // namespace assay
