// What the answer means: the convention options of attention, each a closed enum (library_practice 5). Never assumptions.
#pragma once

#include <cstdint>

namespace assay {

/// Masks that carry data. kBool: u8, non-zero = attend. kAdditive: fp32, added to the scaled score. kBlock: u8 per block of
/// queries x keys, non-zero = attend. kList: int32 key indices per query, -1 or out of range = skip (FlashMLA sparse).
enum class DataMask : std::uint8_t { kNone, kBool, kAdditive, kBlock, kList };

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
/// Memory order of dense and padded tensors; kBhds: channels apart by the sequence, as in a transposed view.
enum class Layout : std::uint8_t { kBhsd, kBshd, kBhds };

/// ALiBi: slope_h * distance is added to the logit of key j of query i; p is the aligned key position of i. The forms differ by a
/// constant per row where the mask is causal (same output, other LSE).
enum class Alibi : std::uint8_t {
  kNone,
  kDistance,  ///< -|p - j|            FlashAttention, not causal
  kKey,       ///< +j                  FlashAttention, causal
  kDiagonal,  ///< +(j - i)            FlashInfer and cuDNN: no kv_len - q_len offset, positive above the diagonal
  kLast,      ///< +(j - kv_len + 1)   vLLM
};

/// A sink: one more logit per query head, not scaled, without a value. Its weight always joins the denominator;
/// kInLse: and the LSE (FlashAttention-4, cuDNN), kOutOfLse: not the LSE (FlashMLA).
enum class Sink : std::uint8_t { kNone, kInLse, kOutOfLse };

/// Descale factors of quantised q, k, v (fp32, multiplied to the stored values): one per tensor, one per (batch, kv head)
/// (FlashAttention-3), or one per block of tokens of a head.
enum class Descale : std::uint8_t { kNone, kTensor, kHead, kBlock };

/// Where keys and values lie. kVllm: [block, slot, head, d] and a block table; kVllmX: K [block, head, d / x, slot, x] with
/// x = 16 bytes, V [block, head, d, slot]; kNhd, kHnd: FlashInfer's [page, slot, head, d] and [page, head, slot, d] with indptr,
/// indices and last_page_len.
enum class KvStore : std::uint8_t { kContiguous, kVllm, kVllmX, kNhd, kHnd };

/// What stands in block-table entries behind a sequence's last page, where no kernel may look.
enum class TablePad : std::uint8_t { kZero, kMinusOne, kHuge, kShared };

}  // namespace assay
