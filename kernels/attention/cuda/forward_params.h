// What an attention forward kernel on the device is told: device addresses, strides, lengths and options, plain data.
#pragma once

#include <cstdint>

#include "oracle/semantics.h"

struct CUstream_st;  // CUDA's cudaStream_t points to it: this header needs no toolkit

namespace assay::cuda {

/// Where the vector (scalar, for the LSE) of a row lies: element batch * b + head * h + row * i from the tensor's
/// element [0, ..., 0]; channels are neighbours. Packed: batch is 0 and i counts tokens. In elements.
struct TokenStrides {
  std::int64_t batch = 0, head = 0, row = 0;
};

/// Lengths of one side. Dense: `lens` is null. Padded: rows used of each sequence [b]. Packed: `lens` holds the first
/// token of each sequence and the end [b + 1].
struct Lengths {
  const std::int32_t* lens = nullptr;
  bool packed = false;
  std::int32_t longest = 0;
};

/// Key j is admissible for query i where p + first <= j < p + end and 0 <= j < kv length, with the key position p that
/// `align` gives i. kUnbounded where a side has no limit.
struct BandLimits {
  static constexpr std::int32_t kUnbounded = 1 << 28;
  std::int32_t first = -kUnbounded, end = kUnbounded;
};

enum class OutputFormat : std::uint8_t { kBf16, kFp16, kFp32 };

struct ForwardParams {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;           ///< null: none
  const float* sink = nullptr;    ///< [heads_q]
  const float* slopes = nullptr;  ///< [heads_q], or [batch, heads_q] where slope_batch is heads_q
  std::int64_t slope_batch = 0;
  TokenStrides q_at, k_at, v_at, o_at, lse_at;
  Lengths q_len, kv_len;
  std::int32_t batch = 0, heads_q = 0, heads_kv = 0, dim_qk = 0, dim_v = 0;
  BandLimits band;
  Align align = Align::kBottomRight;
  float scale = 1.0F;  ///< finite
  float softcap = 0.0F;
  Alibi alibi = Alibi::kNone;
  Sink sink_kind = Sink::kNone;
  LseBase lse_base = LseBase::kNatural;
  EmptyOutput empty_output = EmptyOutput::kZero;
  EmptyLse empty_lse = EmptyLse::kMinusInf;
  OutputFormat output = OutputFormat::kBf16;
  /// Every vector of q, k and v starts at a multiple of 16 bytes.
  bool whole_chunks = false;
  bool whole_outputs = false;  ///< the same for o
};

}  // namespace assay::cuda
