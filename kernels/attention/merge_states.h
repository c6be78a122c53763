// Merging the states of key ranges, each with its own online softmax, by their LSE.
#pragma once

#include <vector>

#include "kernels/attention/online_softmax.h"

namespace assay {

/// m = max lse_s, w_s = exp2(fl((lse_s - m) log2 e)), O = sum w_s O_s / sum w_s, LSE = m + ln sum w_s, ranges
/// ascending. The partials are finished without sink in natural base: normalised fp32 O and LSE; an empty range has O =
/// 0, LSE = -inf, so its weight is 0. The sink joins the merged denominator. `merged` is freshly started.
void merge_states(const std::vector<RowStates>& partials, RowSink sink, LseBase base, RowStates& merged);

}  // namespace assay
