// One attention call seen from a kernel: lengths, rows to compute, loads to fp32, masks and scales, storing. No head
// map here.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/descales.h"
#include "kernels/attention/key_memory.h"
#include "kernels/attention/row_rules.h"
#include "kernels/kernel.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

/// Query rows of one head that must be computed, ascending.
struct HeadRows {
  std::int64_t batch = 0, head = 0;
  std::vector<std::int64_t> queries;
};

class AttentionCall {
 public:
  /// Reads the length tensors. Throws std::invalid_argument if they do not fit the tensors.
  explicit AttentionCall(const Call& call);

  const AttentionParams& params() const { return params_; }
  std::int64_t q_len(std::int64_t batch) const { return queries_.lens[static_cast<std::size_t>(batch)]; }
  /// With the shared prefix.
  std::int64_t kv_len(std::int64_t batch) const { return keys_.length(batch); }
  RowLengths lengths(std::int64_t batch) const { return {q_len(batch), kv_len(batch)}; }
  const RowRules& rules() const { return rules_; }
  const Descales& descales() const { return descales_; }

  /// All rows, or those of the `rows` tensor; in (b, h) order.
  std::vector<HeadRows> rows() const;

  /// Loads q of one row into out[0 .. d), exactly.
  void load_q(std::int64_t batch, std::int64_t head, std::int64_t query, float* out) const;
  /// Loads the stored keys (values) of a range into the first rows of a zero matrix.
  HeadMatrix load_k(std::int64_t batch, std::int64_t kv_head, KeyRange keys, std::int64_t rows,
                    std::int64_t cols) const;
  HeadMatrix load_v(std::int64_t batch, std::int64_t kv_head, KeyRange keys, std::int64_t rows,
                    std::int64_t cols) const;

  /// Rounds o [dv] to the output format (nearest even) and stores it; stores lse if the call wants it.
  void store(std::int64_t batch, std::int64_t head, std::int64_t query, const float* o, float lse) const;

 private:
  std::int64_t row_element(const TensorLayout& layout, std::int64_t batch, std::int64_t head, std::int64_t query) const;

  AttentionParams params_;
  SequenceSpans queries_;
  KeyMemory keys_;
  RowRules rules_;
  Descales descales_;
  TensorView q_, rows_;
  OutputView o_, lse_;
};

}  // namespace assay
