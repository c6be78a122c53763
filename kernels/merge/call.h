// One merge call seen from a kernel: loading parts to fp32 and storing a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/kernel.h"
#include "oracle/ops/merge/merge.h"

namespace assay {

class MergeCall {
 public:
  /// Throws std::invalid_argument if a tensor is missing.
  explicit MergeCall(const Call& call);

  const MergeParams& params() const { return params_; }
  float lse(std::int64_t part, std::int64_t row) const;
  /// By the case's reading of infinities.
  bool is_empty(float lse) const;
  float o(std::int64_t part, std::int64_t row, std::int64_t channel) const;
  /// Rounds o [dv] to the output format (nearest even) and stores it, with the LSE if the call wants it.
  void store(std::int64_t row, const float* o, float lse) const;
  /// The declared o and LSE of a row whose parts are all empty.
  void store_empty(std::int64_t row) const;

 private:
  MergeParams params_;
  TensorView o_parts_, lse_parts_;
  OutputView o_, lse_;
};

/// A reason why a kernel for `input` does not take the case, or nothing.
std::optional<std::string> merge_refuses(const Params& params, Format input);

}  // namespace assay
