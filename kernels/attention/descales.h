// Factors of quantised q, k and v: one per tensor, per head, or per block of tokens.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/vectors.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

class Descales {
 public:
  /// Throws std::invalid_argument if a tensor is missing.
  Descales(std::span<const TensorView> inputs, const AttentionParams& params);

  bool per_block() const { return params_.descale == Descale::kBlock; }
  /// scale q_scale k_scale, what a score of stored values is multiplied by, in fp64: the scale itself without descales,
  /// else off by at most one rounding.
  double score_factor(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const;
  /// v_scale of a key of a query head; 1 without descales.
  float value(std::int64_t batch, std::int64_t head, std::int64_t key) const;

 private:
  std::int64_t block_of(const TensorView& t, std::int64_t token) const;
  float at(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t token) const;

  AttentionParams params_;
  TensorView q_, k_, v_;
};

}  // namespace assay
