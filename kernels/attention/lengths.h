// Where each sequence of a batch begins and how long it is, from whichever tensors the case has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/ops/attention/attention.h"
#include "oracle/tensor.h"

namespace assay {

/// Per batch entry. Both functions throw std::invalid_argument if the lengths do not fit the tensors.
struct SequenceSpans {
  std::vector<std::int64_t> starts;  ///< packed: first token; else zeros
  std::vector<std::int64_t> lens;
};

SequenceSpans query_sequences(std::span<const TensorView> inputs, const AttentionParams& params);
/// Lengths with the shared prefix; starts count the own keys only. Paged stores have no starts.
SequenceSpans key_sequences(std::span<const TensorView> inputs, const AttentionParams& params);

}  // namespace assay
