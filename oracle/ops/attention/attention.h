// Attention: parameters and tensor roles only. No mask, head-map or length-walk code here: kernels may not share it.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/params.h"
#include "oracle/semantics.h"
#include "oracle/tensor.h"

namespace assay {

/// Typed form of an attention case's parameters. Key names in a case line are given in parentheses.
///
///   o[b,h,i,:] = sum_j softmax_j( scale * q[b,h,i,:].k[b,g,j,:] + mask[b,h,i,j] ) v[b,g,j,:],  g = h / (hq / hkv)
///
/// over the admissible keys j of row (b,h,i); lse[b,h,i] = log sum_j exp(logit_j), in base e or 2.
struct AttentionParams {
  std::int64_t batch = 1;         ///< (b)
  std::int64_t heads_q = 1;       ///< (hq)
  std::int64_t heads_kv = 1;      ///< (hkv) divides heads_q; default hq
  std::int64_t len_q = 1;         ///< (sq) longest query length in the batch
  std::int64_t len_kv = 1;        ///< (skv) longest key length in the batch
  std::int64_t dim_qk = 64;       ///< (d)
  std::int64_t dim_v = 64;        ///< (dv) default d
  Format input = Format::kBf16;   ///< (dtype) fp32, fp16 or bf16: q, k, v
  Format output = Format::kBf16;  ///< (out) default dtype
  float scale = 0.125F;           ///< (scale) the fp32 number itself is the definition; default fl32(1/sqrt(d))
  bool causal = false;            ///< (mask=causal)
  DataMask data_mask = DataMask::kNone;  ///< (mask=bool | additive); `causal+bool` combines
  Align align = Align::kBottomRight;     ///< (align) of causal and window: key position of query i
  std::int64_t window_left = -1;   ///< (window=L,R) -1 = unlimited
  std::int64_t window_right = -1;
  WindowEnds window_ends = WindowEnds::kInclusive;  ///< (window_ends)
  EmptyOutput empty_output = EmptyOutput::kZero;    ///< (empty)
  EmptyLse empty_lse = EmptyLse::kMinusInf;         ///< (empty_lse)
  LseBase lse = LseBase::kNatural;                  ///< (lse) kNone: no LSE output
  MaskedNonfinite masked_nonfinite = MaskedNonfinite::kPropagates;  ///< (masked_nonfinite)
  Batching batching = Batching::kDense;             ///< (batch=dense | packed | padded)
  std::vector<std::int64_t> lens_q;                 ///< (q_lens) one per batch entry when not dense
  std::vector<std::int64_t> lens_kv;                ///< (kv_lens)
  Layout layout = Layout::kBhsd;                    ///< (layout) bhsd | bshd; packed is always [token, head, dim]
  std::int64_t pad_rows = 0;  ///< (pad_rows) unused rows allocated after each sequence (dense, padded) or at the end (packed)
  std::int64_t pad_dim = 0;   ///< (pad_dim) unused elements after each head vector
  std::int64_t sampled_rows = 0;  ///< (rows=N) 0 = all rows are judged; else N rows, listed in the `rows` tensor
  std::int64_t rows_seed = 0;     ///< (rows_seed) which rows
};

/// Reads canonical or raw params. Throws InputError naming the key and the value.
AttentionParams attention_params(const Params& params);

// Tensor roles.
//   q [b, hq, sq, d]   k [b, hkv, skv, d]   v [b, hkv, skv, dv]            dense and padded (layout only moves the strides)
//   q [tokens_q, hq, d]  k [tokens_kv, hkv, d]  v [tokens_kv, hkv, dv]      packed
//   cu_seqlens_q, cu_seqlens_kv  i32 [b + 1]                                packed: first token of each sequence
//   seqlens_q, seqlens_kv        i32 [b]                                    padded: used rows of each sequence
//   mask  u8 [b, hq, sq, skv], 1 = attend (bool);  fp32 [b, hq, sq, skv], added to the scaled score (additive)
//         For packed and padded batches it is indexed by the position inside the sequence.
//   rows  i32 [n, 3]  (b, h, i) of the rows that must be computed; absent: all
// Outputs:
//   o    like q with dim dv, format `output`;   lse  fp32 [b, hq, sq] or packed [tokens_q, hq]

}  // namespace assay
