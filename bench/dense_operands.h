// The operands that every form of attention in the benchmark gets: fp64 matrices, converted beforehand.
#pragma once

#include <cstddef>

namespace assay::bench {

/// Row-major: q [rows][d], k [keys][d], v [keys][d].
struct DenseOperands {
  const double* q;
  const double* k;
  const double* v;
  std::size_t rows, keys, d;
  double scale;
};

}  // namespace assay::bench
