// Names of the faults that the mutant program plants in the attention kernels on the device.
#pragma once

#include <cstdint>

namespace assay::cuda {

/// One place in the code each.
enum class DeviceFault : std::int32_t {
  kNone,
  kScaleOff,                ///< the softmax scale is too large by 1e-3
  kLastKeyDropped,          ///< the last key of a sequence is taken for its padding
  kMaskShifted,             ///< causal and right window limits admit one key more
  kGhostKey,                ///< the first column behind the last key, where its tile has one, has logit 0 (and V = 0)
  kWrongKvHead,             ///< query head h reads key head h mod heads_kv
  kTailTileSkipped,         ///< the last key tile is left out if it is not full and not the only one
  kFalseMax,                ///< the running maximum starts at -5e4 instead of -inf
  kAccumulatorNotRescaled,  ///< O keeps its old scale when the maximum rises; l does not
  kSumNotRescaled,          ///< l keeps its old scale when the maximum rises
  kAlphaInBf16,             ///< O is rescaled by alpha rounded to bf16; l by alpha
  kTruncatedP,              ///< P is truncated to bf16
  kSumInBf16,               ///< l is rounded to bf16 with every key tile
  kLseBase,                 ///< the natural LSE adds the base-2 logarithm of l
  kUnwrittenRow,            ///< the last row of a sequence of two or more is not stored
};

}  // namespace assay::cuda
