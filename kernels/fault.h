// Planted faults: switches inside the kernels that exist only in the mutant program.
#pragma once

#include <cstdint>

namespace assay {

enum class Fault : std::uint8_t {
  kNone,
  // M01-M09, M26: non-finite, zero, unwritten, flushed
  kNanEmptyExtent,       ///< the shift by the maximum is not guarded: (-inf) - (-inf) in a tile without admissible key
  kMergeEmptyUnguarded,  ///< a merge does not ask whether a part is empty: (-inf) - (-inf)
  kMergeWithoutMax,      ///< a merge's weights are exp(lse), without subtracting the largest LSE
  kFalseMax,             ///< the running maximum starts at -5e4 (raw scores) instead of -inf
  kSubnormalFlush,       ///< subnormal V are read, and subnormal outputs written, as zero
  kDeviceOverrun,        ///< one element is written behind the last (device softmax)
  // M10-M17: wrong keys, wrong address
  kLastKeyDropped,    ///< the last key of a sequence is taken for its padding
  kMaskShiftedByOne,  ///< causal and right window limits admit one key more
  kKeyOf128Dropped,   ///< the last of every 128 keys is masked
  kPaddedKeyLeaks,    ///< the first column behind the last key, where its tile has one, counts in l: logit 0, V = 0
  kSplitLost,         ///< the last of two or more parts is not merged
  // M18-M23: wrong weights
  kScaleOff,                ///< the softmax scale is too large by the fault's size
  kPartialLseInBf16,        ///< the LSE of a part is held in bf16
  kAccumulatorNotRescaled,  ///< O keeps its old scale when the maximum rises; l does not
  kSumNotRescaled,          ///< l keeps its old scale when the maximum rises (online softmax)
  kLazyMaximum,             ///< the maximum is not raised by less than 2^4, whatever P's offset leaves room for
  kSumOfRoundedP,           ///< l adds P after its rounding
  kTruncatedP,              ///< P is truncated to its format
  // M24, M25: precision
  kScoreInBf16,            ///< S is stored in bf16
  kScoreInFp16,            ///< S is stored in fp16
  kSumInBf16,              ///< l is stored in bf16 between key tiles
  kAlphaInBf16,            ///< O is rescaled by alpha rounded to bf16; l by alpha
  kAccumulatorInBf16,      ///< O is stored in bf16 between key tiles
  kAccumulatorInFp16,      ///< the accumulator of P V is rounded to fp16 after every block of the MMA
  kPromotionMissing,       ///< P V of all key tiles is one chain
  kPartialOutputInBf16,    ///< the O of a part is held in bf16
  kOutputTruncated,        ///< O is truncated to the output format
  kExponentialAlternates,  ///< exp2 is too large by the fault's size at even columns, too small at odd ones
  kCubicExponentials,      ///< every exp2 by the cubic
  // M28-M30: layout, race, history
  kSumOrderVaries,  ///< every other run adds up the lanes of l in another order (online softmax)
  kWorkspaceUnset,  ///< device memory handed out without content is taken for zeros
  kBarrierMissing,  ///< a reduction in shared memory has no barriers between its steps
};

#ifdef ASSAY_MUTANTS

struct SizedFault {
  Fault fault = Fault::kNone;
  int millionths = 0;  ///< size, for faults that have one
};
inline thread_local SizedFault planted_fault;
inline bool faulty(Fault fault) { return planted_fault.fault == fault; }
/// The size of a fault that has one, 0 if it is not planted.
inline double fault_size(Fault fault) { return faulty(fault) ? planted_fault.millionths * 1e-6 : 0.0; }

/// Plants a fault for the life of the object.
class PlantFault {
 public:
  explicit PlantFault(SizedFault fault) : before_(planted_fault) { planted_fault = fault; }
  ~PlantFault() { planted_fault = before_; }
  PlantFault(const PlantFault&) = delete;
  PlantFault& operator=(const PlantFault&) = delete;

 private:
  SizedFault before_;
};

#else

constexpr bool faulty(Fault) { return false; }
constexpr double fault_size(Fault) { return 0.0; }

#endif

}  // namespace assay
