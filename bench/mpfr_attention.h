// Attention in MPFR, row by row: the certified alternative to balls, with operands converted beforehand.
#pragma once

#include <memory>

#include "bench/dense_operands.h"

namespace assay::bench {

class MpfrAttention {
 public:
  /// Converts all operands to `bits` bits.
  MpfrAttention(const DenseOperands& in, int bits);
  ~MpfrAttention();

  /// o [d] and the natural LSE of one row, every operation rounded to nearest at that precision.
  void row(std::size_t r, double* o, double* lse);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::bench
