// A softmax row as a kernel of the declared structure computes it, with any of its steps done otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/softmax/problem.h"

namespace assay {

/// What a kernel does otherwise than declared; the default is nothing. A format kFp32 rounds nothing more.
struct SoftmaxDeviation {
  double scale = 1;                                      ///< multiplies the softmax scale
  double exponent = 1;                                   ///< multiplies the exponents alone, as a wrong log2 e does
  std::function<double(double)> exp2 = nullptr;          ///< of a weight's exponent, in log2 units
  std::int64_t unshifted = 0;                            ///< the last tile of so many keys takes e^x, not e^(x - m)
  int l_power = 1;                                       ///< of alpha, in the rescaling of l; 0: not rescaled
  bool tile_maximum = false;                             ///< m is the tile's own, not carried
  Format l_key = Format::kFp32, l_tile = Format::kFp32;  ///< of l after every key, every tile
  std::function<double(double)> reciprocal = nullptr, log2 = nullptr;
  double gain = 1;  ///< of y
  double lse_factor = 1;
  Format lse_store = Format::kFp32;
};

/// The truth of a row with numbers plus what the deviation changes in the replay: y and LSE.
class SoftmaxReplay {
 public:
  SoftmaxReplay(const Problem& problem, const Arithmetic& declared);
  std::optional<RowOutput> predict(std::size_t row, const SoftmaxDeviation& deviation, const Truth& truth) const;

  const SoftmaxProblem& problem() const { return problem_; }
  bool tiled() const { return tile_ < problem_.params().n; }

 private:
  RowOutput row(const SoftmaxRow& row, const std::vector<std::int32_t>& finite, const SoftmaxDeviation& d) const;

  const SoftmaxProblem problem_;
  bool on_score_ = false, quad_ = false;
  std::int64_t tile_ = 0;
};

}  // namespace assay
