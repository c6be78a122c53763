// Attention as an eager PyTorch test computes it in a 16-bit format: every intermediate tensor rounded to that format.
#pragma once

#include <vector>

#include "oracle/op.h"

namespace assay {

/// The attention output of the comparator in FlashAttention's tests (attention_ref with upcast=False,
/// reorder_ops=True): k times the scale, the scores, the soft cap's steps, the biased scores, the probabilities and the
/// output are each rounded to `dtype`; products accumulate, and the softmax runs, in fp32. Descaled q, k and v are
/// rounded too. Those fp32 steps are taken in fp64 here, 2^-8 and more finer than what is rounded. Masked keys are left
/// out, so that what they hold cannot spoil the comparator. Values parallel to OutputTruth of o. `weights`: the format
/// that P is rounded to besides (FA3's fp8 tests).
std::vector<double> pytorch_attention(const Problem& problem, Format dtype, Format weights);

}  // namespace assay
