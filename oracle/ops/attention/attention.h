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
///   y_j = scale q_scale k_scale_j (q[b,h,i,:] . k[b,g,j,:])       g = h / (hq / hkv); the scales are 1 without descale
///   x_j = softcap tanh(y_j / softcap) + slope_h alibi(i, j) + mask[b,h,i,j]            x_j = y_j + ... without softcap
///   o[b,h,i,:] = sum_j e^x_j v_scale_j v[b,g,j,:] / (sum_j e^x_j [+ e^sink_h])
///
/// over the admissible keys j of row (b,h,i); lse[b,h,i] = log of the sum of e^x_j, with or without the sink, in base e or 2.
struct AttentionParams {
  std::int64_t batch = 1;         ///< (b)
  std::int64_t heads_q = 1;       ///< (hq)
  std::int64_t heads_kv = 1;      ///< (hkv) divides heads_q; default hq
  std::int64_t len_q = 1;         ///< (sq) longest query length in the batch
  std::int64_t len_kv = 1;        ///< (skv) longest key length in the batch
  std::int64_t dim_qk = 64;       ///< (d)
  std::int64_t dim_v = 64;        ///< (dv) default d
  Format input = Format::kBf16;   ///< (dtype) fp32, fp16, bf16, e4m3 or e5m2: q, k, v
  Format output = Format::kBf16;  ///< (out) default dtype, bf16 for 8-bit inputs
  float scale = 0.125F;           ///< (scale) the fp32 number itself is the definition; default fl32(1/sqrt(d))
  bool causal = false;            ///< (mask=causal)
  DataMask data_mask = DataMask::kNone;  ///< (mask=bool | additive | block | list); `causal+bool` combines
  Align align = Align::kBottomRight;     ///< (align) of causal and window: key position of query i
  std::int64_t block_q = 64;       ///< (block=q,k) queries and keys per element of a block mask
  std::int64_t block_kv = 64;
  std::int64_t list_len = 64;      ///< (list) key indices per query of mask=list
  float softcap = 0;               ///< (softcap) 0 = none
  Alibi alibi = Alibi::kNone;      ///< (alibi=none | distance | key | diagonal | last)
  bool slopes_per_batch = false;   ///< (slopes=head | batch_head) shape of the slopes tensor
  Sink sink = Sink::kNone;         ///< (sink=none | in_lse | out_of_lse)
  bool segments = false;           ///< (segments=1) a key is admissible only if its segment id is the query's
  Descale descale = Descale::kNone;  ///< (descale=none | tensor | head | block)
  std::int64_t scale_block = 128;  ///< (scale_block) tokens per factor of descale=block
  std::int64_t window_left = -1;   ///< (window=L,R) -1 = unlimited
  std::int64_t window_right = -1;
  WindowEnds window_ends = WindowEnds::kInclusive;  ///< (window_ends)
  EmptyOutput empty_output = EmptyOutput::kZero;    ///< (empty)
  EmptyLse empty_lse = EmptyLse::kMinusInf;         ///< (empty_lse)
  LseBase lse = LseBase::kNatural;                  ///< (lse) kNone: no LSE output
  MaskedNonfinite masked_nonfinite = MaskedNonfinite::kPropagates;  ///< (masked_nonfinite)
  Batching batching = Batching::kDense;             ///< (batch=dense | packed | padded)
  std::vector<std::int64_t> lens_q;                 ///< (q_lens) one per batch entry when not dense
  std::vector<std::int64_t> lens_kv;                ///< (kv_lens) one per batch entry when not dense or paged
  Layout layout = Layout::kBhsd;                    ///< (layout) bhsd | bshd | bhds; packed is always [token, head, dim]
  std::int64_t offset = 0;         ///< (offset) unused elements in front of q, k, v and o
  bool expand_batch = false;       ///< (expand=batch) k and v have stride 0 over the batch: one copy for all (dense)
  bool expand_heads = false;       ///< (expand=heads) k and v have stride 0 over heads
  bool v_in_k = false;             ///< (v_from=own | k) V is the first dv channels of K: no tensor of its own (MLA)
  std::int64_t prefix = 0;         ///< (prefix) keys that all sequences share; part of skv and of every kv length
  KvStore kv_store = KvStore::kContiguous;  ///< (kv=contiguous | vllm | vllm_x | nhd | hnd)
  std::int64_t page = 16;          ///< (page) slots per page, 1 to 1024
  std::int64_t page_seed = 0;      ///< (page_seed) which physical pages a sequence gets; 0: in order
  std::int64_t spare_pages = 0;    ///< (spare_pages) unused pages among them
  TablePad table_pad = TablePad::kZero;  ///< (table_pad=zero | minus_one | huge | shared) entries behind the last page
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
//   k_prefix [hkv, prefix, d]  v_prefix [hkv, prefix, dv]                   prefix > 0, contiguous: k and v hold the other keys only
//   k, v paged: [pages, page, hkv, d] (vllm, nhd); [pages, hkv, page, d] (hnd);
//        vllm_x: k [pages, hkv, d / x, page, x], v [pages, hkv, dv, page]; queries stay dense, packed or padded
//   block_table  i32 [b, most pages + 1], seqlens_kv i32 [b] (all keys)     vllm, vllm_x
//   kv_indptr i32 [b + 1], kv_indices i32 [pages used + 1], kv_last_page_len i32 [b] (0 without pages)   nhd, hnd
//        Entries behind a sequence's last page (at least one of block_table, one of kv_indices) hold what table_pad says.
//        With prefix > 0 (a multiple of page) the first prefix / page entries of all sequences name the same pages.
//   cu_seqlens_q, cu_seqlens_kv  i32 [b + 1]                                packed: first token of each sequence (own keys)
//   seqlens_q, seqlens_kv        i32 [b]                                    padded: used rows of each sequence (own keys)
//   mask  u8 [b, hq, sq, skv], 1 = attend (bool);  fp32 [b, hq, sq, skv], added to the logit (additive)
//         u8 [b, hq, ceil(sq / block_q), ceil(skv / block_kv)] (block);  i32 [b, hq, sq, list] (list)
//         For packed and padded batches it is indexed by the position inside the sequence.
//   slopes  fp32 [hq] or [b, hq]          sink  fp32 [hq]
//   seg_q i32 [b, sq], seg_kv i32 [b, skv], by the position inside the sequence
//   q_scale, k_scale, v_scale  fp32 [1] (tensor); [b, hkv] (head); [b, hq or hkv, ceil(longest / scale_block)] (block)
//   rows  i32 [n, 3]  (b, h, i) of the rows that must be computed; absent: all
// Outputs:
//   o    like q with dim dv, format `output`;   lse  fp32 [b, hq, sq] or packed [tokens_q, hq]

}  // namespace assay
