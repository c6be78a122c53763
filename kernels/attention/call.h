// One attention call seen from a kernel: lengths, where rows lie, loading to fp32, storing. No masks and no head map
// here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

/// Query rows of one head that must be computed, ascending.
struct HeadRows {
  std::int64_t batch = 0, head = 0;
  std::vector<std::int64_t> queries;
};

/// Row-major fp32 copy of a head's vectors, zero-padded to multiples of tiles and of the MMA's K.
struct HeadMatrix {
  std::int64_t rows = 0, cols = 0;  ///< with padding
  std::vector<float> data;
  const float* row(std::int64_t r) const { return data.data() + r * cols; }
};

HeadMatrix transposed(const HeadMatrix& m);

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

class AttentionCall {
 public:
  /// Reads the length tensors. Throws std::invalid_argument if they do not fit the tensors.
  explicit AttentionCall(const Call& call);

  const AttentionParams& params() const { return params_; }
  std::int64_t q_len(std::int64_t batch) const { return q_lens_[static_cast<std::size_t>(batch)]; }
  std::int64_t kv_len(std::int64_t batch) const { return kv_lens_[static_cast<std::size_t>(batch)]; }

  /// All rows, or those of the `rows` tensor; in (b, h) order.
  std::vector<HeadRows> rows() const;

  /// Loads q of one row into out[0 .. d), exactly.
  void load_q(std::int64_t batch, std::int64_t head, std::int64_t query, float* out) const;
  /// Loads all keys (values) of a sequence; padding is zero.
  HeadMatrix load_k(std::int64_t batch, std::int64_t kv_head, std::int64_t rows, std::int64_t cols) const;
  HeadMatrix load_v(std::int64_t batch, std::int64_t kv_head, std::int64_t rows, std::int64_t cols) const;

  /// The row's mask data: element j of the result is mask(b, h, i, j). Only for the data mask that the call has.
  bool attends(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
    return mask_.code(mask_.element(batch, head, query, key)) != 0;
  }
  float bias(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
    return static_cast<float>(mask_.value(mask_.element(batch, head, query, key)));
  }

  /// Rounds o [dv] to the output format (nearest even) and stores it; stores lse if the call wants it.
  void store(std::int64_t batch, std::int64_t head, std::int64_t query, const float* o, float lse) const;

 private:
  std::int64_t first_element(const TensorLayout& layout, const std::vector<std::int64_t>& starts, std::int64_t batch,
                             std::int64_t head, std::int64_t row) const;
  HeadMatrix load(const TensorView& t, std::int64_t batch, std::int64_t kv_head, std::int64_t dim, std::int64_t rows,
                  std::int64_t cols) const;

  AttentionParams params_;
  TensorView q_, k_, v_, mask_, rows_;
  OutputView o_, lse_;
  std::vector<std::int64_t> q_starts_, kv_starts_;  ///< packed: first token of each sequence; else zeros
  std::vector<std::int64_t> q_lens_, kv_lens_;
};

}  // namespace assay
