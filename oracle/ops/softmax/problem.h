// One softmax problem as the oracle reads it: exact logit parts, admissible keys, and where the outputs lie.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/softmax/softmax.h"

namespace assay {

/// One row's keys. The logit of key j is t_j = linear_j + bias_j; arrays are parallel to `key`.
struct SoftmaxRow {
  std::int64_t row = 0;
  std::vector<std::int32_t> key;  ///< admissible keys, ascending
  std::vector<double> linear;     ///< scale x, exact: the product of two fp32 numbers fits a double
  std::vector<double> bias;       ///< additive mask, else 0
};

/// Non-owning; the Problem must outlive it. Kernels and the independent check have their own.
class SoftmaxProblem {
 public:
  explicit SoftmaxProblem(const Problem& problem);

  const SoftmaxParams& params() const { return params_; }
  SoftmaxRow row(std::int64_t row) const;

  /// Output layouts; null where the case does not ask for them.
  const TensorLayout* y() const { return y_; }
  const TensorLayout* lse() const { return lse_; }
  const TensorLayout* m() const { return m_; }
  const TensorLayout* l() const { return l_; }

 private:
  SoftmaxParams params_;
  TensorView x_, mask_;
  const TensorLayout *y_ = nullptr, *lse_ = nullptr, *m_ = nullptr, *l_ = nullptr;
};

// Class rules (numerics.md 2.14), from the mathematics alone. The logits are t_j of the admissible keys j.
//  1. No admissible key: y is the declared empty value (kZero; kNan; kMean: kNumber 1 / n), LSE the declared one.
//  2. Logits follow IEEE's rules for infinities: inf * 0 and inf - inf are NaN. Any NaN t: y and LSE are NaN. Else any +inf t: y is
//     NaN, LSE is NaN or +inf. y of keys that the mask excludes is kZero or NaN.
//  3. All t are -inf: y is NaN or the declared empty value; LSE is NaN, -inf or the declared empty value.
//  4. Otherwise y of keys with t = -inf and of excluded keys is kZero, of the others kNumber; LSE is kNumber, in the declared base.
// States of the recurrence over a prefix of the row:
//  5. A NaN t: l is NaN; m is NaN or the maximum of the others (max.f32 drops NaN). Else a +inf t: l is NaN, m is +inf or NaN.
//  6. No key, or only t = -inf: m is -inf, l is zero; with t = -inf l may also be NaN.
//  7. Otherwise both are kNumber.
struct SoftmaxTruth {
  RowFacts facts;
  std::vector<double> y_mid, y_radius;  ///< [n], by position in the row
  std::vector<ClassSet> y_classes;
  double lse_mid = 0, lse_radius = 0;  ///< in the declared base
  ClassSet lse_classes = kNumber;
  std::vector<double> m_mid, m_radius, l_mid, l_radius;  ///< [steps]
  std::vector<ClassSet> m_classes, l_classes;
};

/// All of a row's truth but the numbers: facts (lse, min and max where no arithmetic is needed), classes, and mid = 1 /
/// n for kMean.
struct Classified {
  SoftmaxTruth truth;
  std::vector<std::int32_t> finite;      ///< indices into row.key of the keys with finite t, ascending
  bool has_numbers = false;              ///< rule 4: y and LSE are numbers
  std::vector<std::size_t> step_finite;  ///< [steps] how many of `finite` the prefix of each step holds
};
Classified classify(const SoftmaxParams& params, const SoftmaxRow& row);

Truth start_truth(const SoftmaxProblem& problem);
void append(Truth& truth, const SoftmaxProblem& problem, std::int64_t row, const SoftmaxTruth& row_truth);

/// The row in ball arithmetic at `precision` bits, and more, up to 1024, until its numbers are known to 60 bits.
SoftmaxTruth softmax_reference_row(const SoftmaxProblem& problem, const SoftmaxRow& row, int precision);
Truth softmax_reference(const Problem& problem, int precision);

}  // namespace assay
