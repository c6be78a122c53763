// P of every key as the kernel must have rounded it, from replayed maxima.
#pragma once

#include <span>
#include <vector>

#include "oracle/format.h"
#include "oracle/ops/attention/tile_walk.h"

namespace assay {

/// Rounds positive numbers within the range of a format to nearest even; the same values as round_to, faster.
class PositiveRounder {
 public:
  explicit PositiveRounder(Format format);
  double operator()(double value) const;

 private:
  bool rounds_ = true;
  int dropped_ = 0;  ///< fraction bits of fp64 that the format lacks
  double min_normal_ = 0;
  double to_subnormal_ = 0;  ///< adding and subtracting it leaves a multiple of the smallest subnormal
};

/// Relative errors of the kernel's fp32 P around 2^offset e^(x_j - M_t), besides those of the logit and of M_t.
struct WeightErrors {
  double per_nat = 0;      ///< times |x_j - M_t|
  double per_maximum = 0;  ///< times |M_t|
  double constant = 0;
  bool may_flush = false;  ///< fp32 subnormals may become 0
};

struct WeightReplay {
  std::vector<double> p;      ///< 2^offset e^(x_j - M_t)
  std::vector<double> error;  ///< the kernel's P before rounding is p e^eta, |eta| at most this
  std::vector<double> tilde;  ///< P rounded to its format: midpoint of the two roundings where they differ
  std::vector<double> gap;    ///< half their distance; 0: known exactly
};

/// The weights of one split's keys [steps' keys], written at the keys' own indices. `max_logit` is x_max.
void replay_weights(const WalkInput& row, const SplitWalk& split, double max_logit, int offset,
                    const WeightErrors& errors, const PositiveRounder& round, WeightReplay& out);

/// The same where the kernel's scores are known bit by bit and the scale is folded: P = ex2(fma(s, c, -fl(M_t c))) with
/// the fp32 number c and s the scores with the scale's sign, so that only ex2's own error is left.
void replay_folded(const WalkInput& row, const SplitWalk& split, std::span<const double> score, float c,
                   double exponential, const WeightErrors& errors, const PositiveRounder& round, WeightReplay& out);

}  // namespace assay
