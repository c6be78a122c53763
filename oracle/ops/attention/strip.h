// A strip of attention rows of one head in fp64: scores, weights and outputs as products over packed panels.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "oracle/aligned.h"
#include "oracle/ops/attention/row_errors.h"
#include "oracle/ops/attention/row_logits.h"
#include "oracle/ops/attention/strip_loops.h"

namespace assay {

/// Copies the radii of a row's numbers from its analysis, after sharpen_radius.
void take_radius(const AttentionParams& params, const RowAnalysis& a, RowTruth& truth);

/// Evaluates strips of rows; one per thread. Holds scores and weights of a strip, so O(rows keys), and what a row's analysis needs.
/// A row's result does not depend on the rows beside it.
class Strip {
 public:
  explicit Strip(const AttentionProblem& problem);
  ~Strip();

  /// Rows to take at once: enough to use each key many times, few enough to keep memory small.
  static std::size_t rows_at_once(std::int64_t keys);

  /// Called for every row in order, with its truth, and its analysis if it has finite logits or is a mean of values, else null. Both
  /// are valid, and may be changed, during the call only.
  using Visit = std::function<void(std::size_t, RowTruth&, RowAnalysis*)>;
  /// All rows must be of `head`.
  void evaluate(const HeadOperands& head, std::span<const AttentionRow> rows, const Visit& visit);

  /// Fills the arrays of the analysis at hand, during its visit.
  void describe(RowAnalysis& a);

 private:
  struct Line;
  void begin(Line& line, const AttentionRow& row);
  void score_rows();
  void score_magnitudes();
  double magnitude_rounding() const;
  double magnitude_of(std::size_t r, std::int32_t key) const;
  double largest_magnitude(std::size_t r) const;
  void weigh(std::size_t r);
  bool weigh_alike(std::size_t r);
  void weigh_gathered(std::size_t r);
  void scale_by_block(std::size_t r);
  void clear_weights(std::size_t r);
  template <class Fill>
  void weigh_tiles(std::size_t r, const Fill& fill);
  void multiply_values();
  void finish(std::size_t r, const Visit& visit);
  void finish_exactly(std::size_t r, const Visit& visit);
  RowAnalysis& analyse(std::size_t r);
  void sums(std::size_t r, RowAnalysis& a);
  void name_keys(const Line& line, RowAnalysis& a);
  void outputs(std::size_t r, RowAnalysis& a);
  std::vector<bool> nonzero_channels(std::size_t r, const RowAnalysis& a) const;
  void take_mean(std::size_t r, RowTruth& truth, const Visit& visit);

  double* scores(std::size_t tile, std::size_t r) { return scores_.data() + chunk(tile, r); }
  double* weights(std::size_t tile, std::size_t r) { return weights_.data() + chunk(tile, r); }
  std::size_t chunk(std::size_t tile, std::size_t r) const { return ((tile - first_tile_) * rows_ + r) * stride_; }

  const AttentionProblem& problem_;
  const HeadOperands* head_ = nullptr;
  int bits_;
  WeightRounding rounding_;
  bool uniform_ = false;
  std::vector<Line> lines_;
  std::size_t rows_ = 0, current_ = 0;
  std::size_t first_ = 0, end_ = 0;            ///< keys that some row looks at
  std::size_t first_tile_ = 0, end_tile_ = 0;
  std::size_t stride_ = 0;                     ///< from row to row of a tile
  std::size_t q_stride_ = 0, o_stride_ = 0;
  AlignedVector<double> q_, q_magnitudes_, scores_, magnitudes_, weights_, o_;
  AlignedVector<float> weights32_, abs_;
  std::vector<const double*> a_;
  std::vector<double*> c_;
  std::vector<const float*> a32_;
  std::vector<float*> c32_;
  std::vector<double> row_scores_, logits_, depths_, eta_;
  RowAnalysis alike_;                          ///< of the row at hand, if its keys are alike
  std::unique_ptr<Strip> mean_;
};

}  // namespace assay
