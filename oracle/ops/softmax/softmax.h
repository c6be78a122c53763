// Softmax: parameters and tensor roles only. No mask code here: kernels may not share it.
#pragma once

#include <cstdint>

#include "oracle/params.h"
#include "oracle/semantics.h"
#include "oracle/tensor.h"

namespace assay {

/// Typed form of a softmax case's parameters. Key names in a case line are given in parentheses.
///
///   t[i,j] = scale x[i,j] + mask[i,j]        y[i,j] = e^t[i,j] / sum_k e^t[i,k]        lse[i] = log sum_k e^t[i,k]
///
/// over the admissible keys of row i, and, after every `steps` keys from the first on, the state of the online
/// recurrence:
///
///   m[i,s] = max over the keys of the steps 0 ... s of t[i,j]        l[i,s] = sum over them of e^(t[i,j] - m[i,s])
struct SoftmaxParams {
  std::int64_t rows = 1;                 ///< (rows)
  std::int64_t n = 64;                   ///< (n) elements of a row, may be 0
  Format input = Format::kBf16;          ///< (dtype) fp32, fp16 or bf16: x
  Format output = Format::kBf16;         ///< (out) default dtype
  float scale = 1;                       ///< (scale) the fp32 number itself is the definition
  DataMask data_mask = DataMask::kNone;  ///< (mask=none | bool | additive)
  std::int64_t steps = 0;                ///< (steps) keys per step of the recurrence; 0: its states are not asked for
  LseBase lse = LseBase::kNone;          ///< (lse)
  EmptyOutput empty_output = EmptyOutput::kZero;  ///< (empty) y of a row without admissible key; kMean: 1 / n
  EmptyLse empty_lse = EmptyLse::kMinusInf;       ///< (empty_lse)
  std::int64_t pad = 0;                           ///< (pad) unused elements behind each row of x and y
  std::int64_t offset = 0;                        ///< (offset) unused elements in front of x and y

  std::int64_t step_count() const { return steps > 0 ? (n + steps - 1) / steps : 0; }
};

/// Reads canonical or raw params. Throws InputError naming the key and the value.
SoftmaxParams softmax_params(const Params& params);

// Tensor roles.
//   x     [rows, n]
//   mask  u8 [rows, n], 1 = admissible (bool);  fp32 [rows, n], added to scale x (additive)
// Outputs:
//   y     [rows, n], format `output`
//   lse   fp32 [rows]                              lse=e or lse=2
//   m, l  fp32 [rows, ceil(n / steps)]             steps > 0; l is relative to the m of its step, natural units

}  // namespace assay
