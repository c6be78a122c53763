// A plain matrix product.
#include "bench/eigen_v3.h"

#include "bench/eigen_forms.h"

namespace assay::bench {

void eigen_product(const DenseOperands& in, double* c) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Index = Eigen::Index;
  const auto rows = static_cast<Index>(in.rows), keys = static_cast<Index>(in.keys), d = static_cast<Index>(in.d);
  const Eigen::Map<const Matrix> q(in.q, rows, d), k(in.k, keys, d);
  Eigen::Map<Matrix>(c, rows, keys).noalias() = q * k.transpose();
}

}  // namespace assay::bench
