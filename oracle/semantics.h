// What the answer means: the convention options of attention, each a closed enum (library_practice 5). Never assumptions.
#pragma once

#include <cstdint>

namespace assay {

/// Masks that carry data. kBool: u8, non-zero = attend. kAdditive: fp32, added to the scaled score.
enum class DataMask : std::uint8_t { kNone, kBool, kAdditive };

/// Key position of query i for causal and window masks. kBottomRight: i + kv_len - q_len (FlashAttention >= 2.1,
/// FlashInfer, vLLM); kTopLeft: i (PyTorch is_causal, cuDNN default).
enum class Align : std::uint8_t { kBottomRight, kTopLeft };

/// Window (L, R) at key position p admits kInclusive: [p-L, p+R] (FlashAttention); kLeftExclusive: (p-L, p+R] (cuDNN).
enum class WindowEnds : std::uint8_t { kInclusive, kLeftExclusive };

/// Output of a row without admissible key. kMean: mean of v over all keys of the sequence (finite-sentinel kernels).
enum class EmptyOutput : std::uint8_t { kZero, kNan, kMean };
/// LSE of such a row. kMinusInf: FA3, FlashInfer; kPlusInf: FA2, FlashMLA.
enum class EmptyLse : std::uint8_t { kMinusInf, kPlusInf };

enum class LseBase : std::uint8_t { kNone, kNatural, kTwo };

/// Non-finite K or V of a masked key inside the sequence: kIgnored: must not reach the output; kPropagates: NaN is also
/// allowed in the channels (V) it touches. Bytes outside the sequence must never matter.
enum class MaskedNonfinite : std::uint8_t { kIgnored, kPropagates };

enum class Batching : std::uint8_t { kDense, kPacked, kPadded };
enum class Layout : std::uint8_t { kBhsd, kBshd };

}  // namespace assay
