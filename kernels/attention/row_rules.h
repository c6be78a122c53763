// What a query row may see and what its scores become: admissible keys, soft cap, biases, sink. Every kernel's own
// reading.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/vectors.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

/// Lengths that a row's rules depend on.
struct RowLengths {
  std::int64_t q = 0, kv = 0;
};

class RowRules {
 public:
  /// Throws std::invalid_argument if a tensor is missing.
  RowRules(std::span<const TensorView> inputs, const AttentionParams& params);

  /// Keys that length, causality and window leave.
  KeyRange range(RowLengths lengths, std::int64_t query) const;
  /// keep[j - keys.first] = 1 for the keys that may take part, 0 for the others; keys within the sequence.
  void admissible(RowLengths lengths, std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys,
                  std::uint8_t* keep) const;

  /// A soft cap or a bias stands between the scaled score and the logit.
  bool adjusts() const { return params_.softcap > 0.0F || biased(); }
  /// x[j - keys.first], scaled scores, become logits, each operation rounded to fp32: x = softcap tanh(x / softcap),
  /// then x = x + slope distance, then x = x + mask.
  void adjust(RowLengths lengths, std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys,
              float* x) const;

  /// The head's sink; -inf without one.
  float sink(std::int64_t head) const;

 private:
  bool biased() const { return params_.alibi != Alibi::kNone || params_.data_mask == DataMask::kAdditive; }
  std::int64_t position(RowLengths lengths, std::int64_t query) const;
  void listed(std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys, std::uint8_t* keep) const;

  AttentionParams params_;
  TensorView mask_, slopes_, sink_, seg_q_, seg_kv_;
};

/// The case has keys inside a sequence that some row does not see.
bool masks_keys(const AttentionParams& params);

}  // namespace assay
