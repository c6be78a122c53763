// Planted faults: switches inside the kernels that exist only in the mutant program.
#pragma once

#include <cstdint>

namespace assay {

enum class Fault : std::uint8_t {
  kNone,
  kNanEmptyExtent,    ///< the shift by the maximum is not guarded: (-inf) - (-inf) in a tile without admissible key
  kFalseMax,          ///< the running maximum starts at -5e4 (raw scores) instead of -inf
  kSubnormalFlush,    ///< subnormal V are read, and subnormal outputs written, as zero
  kLastKeyDropped,    ///< the last key of a sequence is taken for its padding
  kMaskShiftedByOne,  ///< causal and right window limits admit one key more
  kAccumulatorNotRescaled,  ///< O keeps its old scale when the maximum rises; l does not
  kSumNotRescaled,          ///< l keeps its old scale when the maximum rises (online softmax)
  kMergeWithoutMax,         ///< a merge's weights are exp(lse), without subtracting the largest LSE
  kMergeEmptyUnguarded,     ///< a merge does not ask whether a part is empty: (-inf) - (-inf)
};

#ifdef ASSAY_MUTANTS

inline thread_local Fault planted_fault = Fault::kNone;
inline bool faulty(Fault fault) { return planted_fault == fault; }

/// Plants a fault for the life of the object.
class PlantFault {
 public:
  explicit PlantFault(Fault fault) : before_(planted_fault) { planted_fault = fault; }
  ~PlantFault() { planted_fault = before_; }
  PlantFault(const PlantFault&) = delete;
  PlantFault& operator=(const PlantFault&) = delete;

 private:
  Fault before_;
};

#else

constexpr bool faulty(Fault) { return false; }

#endif

}  // namespace assay
