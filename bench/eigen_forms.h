// Attention in fp64 as one would write it with Eigen, without any error bound: what the oracle's speed is compared with.
#pragma once

#include "bench/dense_operands.h"

namespace assay::bench {

/// o [rows][d] and lse [rows], holding the whole [rows][keys] array of scores. eigen_matrix.cc
void eigen_matrix_attention(const DenseOperands& in, double* o, double* lse);

/// The same in strips of 64 rows. eigen_strips.cc
void eigen_strip_attention(const DenseOperands& in, double* o, double* lse);

/// c [rows][keys] = q k^T, the plain product that thread scaling is compared with. eigen_product.cc
void eigen_product(const DenseOperands& in, double* c);

}  // namespace assay::bench
