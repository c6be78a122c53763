// One softmax call seen from a kernel: loading rows to fp32 and storing what it computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "oracle/ops/softmax/softmax.h"

namespace assay {

/// One row as a kernel holds it; arrays are [n].
struct SoftmaxInput {
  std::vector<float> x, bias;      ///< bias is 0 without an additive mask
  std::vector<std::uint8_t> keep;  ///< 0: the mask excludes the key
};

class SoftmaxCall {
 public:
  /// Throws std::invalid_argument if a tensor is missing.
  explicit SoftmaxCall(const Call& call);

  const SoftmaxParams& params() const { return params_; }
  void load(std::int64_t row, SoftmaxInput& input) const;
  /// Rounds y [n] to the output format (nearest even) and stores it.
  void store_y(std::int64_t row, const float* y) const;
  /// Stores the LSE if the call wants it.
  void store_lse(std::int64_t row, float lse) const;
  void store_state(std::int64_t row, std::int64_t step, float m, float l) const;
  /// The declared y and LSE of a row without weights.
  void store_empty(std::int64_t row) const;

 private:
  SoftmaxParams params_;
  TensorView x_, mask_;
  OutputView y_, lse_, m_, l_;
};

/// A reason why a kernel for `input` does not take the case, or nothing.
std::optional<std::string> softmax_refuses(const SoftmaxParams& params, Format input);

}  // namespace assay
