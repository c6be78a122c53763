// Attention in strips of rows whose scores stay in cache; every array is allocated once.
#include "bench/eigen_v3.h"

#include "bench/eigen_forms.h"

namespace assay::bench {

void eigen_strip_attention(const DenseOperands& in, double* o, double* lse) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Index = Eigen::Index;
  constexpr Index kStrip = 64;
  const auto rows = static_cast<Index>(in.rows), keys = static_cast<Index>(in.keys), d = static_cast<Index>(in.d);
  const Eigen::Map<const Matrix> q(in.q, rows, d), k(in.k, keys, d), v(in.v, keys, d);
  Eigen::Map<Matrix> out(o, rows, d);
  Matrix scores(rows < kStrip ? rows : kStrip, keys), scaled(scores.rows(), d);
  Eigen::VectorXd largest, sum;
  for (Index first = 0; first < rows; first += kStrip) {
    const Index count = rows - first < kStrip ? rows - first : kStrip;
    auto strip = scores.topRows(count);
    scaled.topRows(count) = in.scale * q.middleRows(first, count);
    strip.noalias() = scaled.topRows(count) * k.transpose();
    largest = strip.rowwise().maxCoeff();
    strip.colwise() -= largest;
    strip = strip.array().exp();
    sum = strip.rowwise().sum();
    out.middleRows(first, count).noalias() = strip * v;
    out.middleRows(first, count).array().colwise() /= sum.array();
    Eigen::Map<Eigen::VectorXd>(lse + first, count) = largest.array() + sum.array().log();
  }
}

}  // namespace assay::bench
