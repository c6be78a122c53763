// The end of a row: its sink joins the denominator, its LSE is formed; what an empty row holds.
#pragma once

#include "kernels/attention/call.h"
#include "oracle/semantics.h"

namespace assay {

/// A row whose keys gave o = sum e^(x - max) v and the sum of e^(x - max) becomes o * keep / sum.
struct RowEnd {
  float keep = 1.0F;  ///< below 1 where the sink is the largest logit
  float sum = 1.0F;
  float lse = 0.0F;  ///< in the base asked for
};

struct RowSink {
  Sink kind = Sink::kNone;
  float logit = 0.0F;
};
RowSink sink_of(const AttentionCall& call, std::int64_t head);

/// `max` is the natural logit that `sum` is relative to, `max_log2` the kernel's form of max log2 e. The sink is added
/// here, at the end, as one more logit: the running maximum and P never see it, so that an LSE without it is still at
/// hand.
RowEnd end_row(float max, float max_log2, float sum, RowSink sink, LseBase base);

/// What a row holds that has no admissible key, or whose logits are all -inf.
struct EmptyRow {
  bool mean = false;  ///< O is the mean of V over all keys of the sequence
  float o = 0.0F;     ///< else every channel is this
  float lse = 0.0F;   ///< in the declared base
};
/// As declared; but a sink leaves its denominator and no numerator: O is 0 then, and the LSE is the sink where it is
/// part of it.
EmptyRow empty_row(const AttentionParams& params, RowSink sink);

}  // namespace assay
