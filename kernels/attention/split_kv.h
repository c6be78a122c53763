// FlashDecoding: the keys of a row in splits, each with its own online softmax, merged by their LSE.
#pragma once

#include "kernels/attention/online_softmax.h"

namespace assay {

inline constexpr std::int64_t kSplitTileN = 64;

/// Splits for the longest sequence of the batch: one per 256 keys up to 4,096 keys, one per 512 above. Every sequence
/// is cut into that many ranges of whole tiles, so that short ones have empty splits.
std::int64_t splits_of(const AttentionParams& params);
Arithmetic split_arithmetic(const AttentionParams& params);
/// Reads K and V of a head ahead, or `by_tile`, as it comes to them.
RunFacts run_split_kv(const AttentionCall& call, bool by_tile);

}  // namespace assay
