// Merge of partial softmax states: parameters and tensor roles only. No weight or guard code here: kernels may not
// share it.
#pragma once

#include <cstdint>

#include "oracle/params.h"
#include "oracle/semantics.h"
#include "oracle/tensor.h"

namespace assay {

/// Typed form of a merge case's parameters. Key names in a case line are given in parentheses.
///
///   o[i,:] = sum_s B^lse_parts[s,i] o_parts[s,i,:] / sum_s B^lse_parts[s,i]        lse[i] = log_B sum_s B^lse_parts[s,i]
///
/// over the parts s of row i that are not empty; B is e or 2.
struct MergeParams {
  std::int64_t parts = 2;            ///< (parts) may be 0
  std::int64_t rows = 1;             ///< (rows)
  std::int64_t dim_v = 64;           ///< (dv)
  Format input = Format::kBf16;      ///< (dtype) fp32, fp16 or bf16: o_parts
  Format output = Format::kBf16;     ///< (out) default dtype
  LseBase base = LseBase::kNatural;  ///< (base=e | 2) of lse_parts and lse
  bool has_lse = true;               ///< (lse=yes | no) whether the merged LSE is an output
  /// (empty_part=-inf | either) An LSE of -inf marks an empty part; `either`: one of +inf too (FlashAttention-2 and
  /// FlashMLA write it, vLLM and SGLang read it so). Otherwise +inf is data.
  bool plus_inf_is_empty = false;
  EmptyOutput empty_output = EmptyOutput::kZero;  ///< (empty=zero | nan) o of a row whose parts are all empty
  EmptyLse empty_lse = EmptyLse::kMinusInf;       ///< (empty_lse) and its LSE
  /// (masked_nonfinite) kIgnored: the o of an empty part may hold anything and must not matter. kPropagates: NaN or
  /// infinities there may show as NaN (a kernel multiplies them by 0).
  MaskedNonfinite masked_nonfinite = MaskedNonfinite::kPropagates;
  bool rows_first = false;  ///< (layout=parts | rows) memory order of o_parts and lse_parts: which axis is outermost
  std::int64_t pad = 0;     ///< (pad) unused elements behind each vector of o_parts and o
};

/// Reads canonical or raw params. Throws InputError naming the key and the value.
MergeParams merge_params(const Params& params);

// Tensor roles.
//   o_parts    [parts, rows, dv], format `input`     lse_parts  fp32 [parts, rows]
// Outputs:
//   o  [rows, dv], format `output`                   lse  fp32 [rows]

}  // namespace assay
