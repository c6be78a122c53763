// The LSE merge of row states.
#include "kernels/attention/merge_states.h"

#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {

void merge_states(const std::vector<RowStates>& partials, RowSink sink, LseBase base, RowStates& merged) {
  const std::size_t rows = merged.m.size();
  const std::size_t dv = merged.o.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    float m = -kInfinity;
    for (const RowStates& partial : partials) m = max_keeping_nan(m, partial.lse[row]);
    merged.empty[row] = m == -kInfinity && !faulty(Fault::kEmptySplitsMerged);
    if (merged.empty[row]) continue;
    float* o = merged.o.data() + row * dv;
    float sum = 0.0F;
    for (const RowStates& partial : partials) {
      const bool counted = partial.lse[row] == -kInfinity && faulty(Fault::kEmptyPartCounted);
      const float lse = counted ? 0.0F : partial.lse[row];
      const float weight = exp2_f32(faulty(Fault::kMergeBaseTwo) ? lse - m : (lse - m) * kLog2e);
      sum += weight;
      const bool next = faulty(Fault::kPartialOfNextRow) && &partial == &partials.back();
      const std::size_t from = next ? (row + 1) % rows : row;
      for (std::size_t c = 0; c < dv; ++c) o[c] += weight * partial.o[from * dv + c];
    }
    const RowEnd end = end_row(m, m * kLog2e, sum, sink, base);
    for (std::size_t c = 0; c < dv; ++c) o[c] = o[c] * end.keep / end.sum;
    merged.lse[row] = end.lse;
  }
}

}  // namespace assay
