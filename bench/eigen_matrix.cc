// Attention over arrays of all scores and weights, as the formula reads.
#include "bench/eigen_v3.h"

#include "bench/eigen_forms.h"

namespace assay::bench {

void eigen_matrix_attention(const DenseOperands& in, double* o, double* lse) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Index = Eigen::Index;
  const auto rows = static_cast<Index>(in.rows), keys = static_cast<Index>(in.keys), d = static_cast<Index>(in.d);
  const Eigen::Map<const Matrix> q(in.q, rows, d), k(in.k, keys, d), v(in.v, keys, d);
  Eigen::Map<Matrix> out(o, rows, d);
  const Matrix scores = in.scale * q * k.transpose();
  const Eigen::VectorXd largest = scores.rowwise().maxCoeff();
  const Matrix weights = (scores.colwise() - largest).array().exp();
  const Eigen::VectorXd sum = weights.rowwise().sum();
  out = ((weights * v).array().colwise() / sum.array()).matrix();
  Eigen::Map<Eigen::VectorXd>(lse, rows) = largest.array() + sum.array().log();
}

}  // namespace assay::bench
