// Detection floors: the smallest size of each planted fault at which some element of a case leaves its acceptance set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/accept.h"
#include "oracle/op.h"

namespace assay {

/// What one output's elements may be, parallel to OutputTruth, and what an otherwise perfect kernel gives there.
struct JudgedOutput {
  std::vector<Acceptance> sets;
  std::vector<double> centre;  ///< before output rounding; NaN: the element is not judged as a number
};

/// The acceptance sets of one level, or of another rule to compare with.
struct JudgedLevel {
  std::string name;                   ///< "T0", "T1", "T2", ...
  std::vector<JudgedOutput> outputs;  ///< parallel to Truth::outputs
};

/// The sets of all levels up to `level` together. Centres: the truth at T0, above it the replayed value of the highest
/// tier that says something about the element: there a perfect kernel is one whose roundings are those that it
/// declares.
JudgedLevel judged_level(const Evaluation& evaluation, Level level);

/// The smallest rejected size of one fault in one output at one level.
struct Floor {
  enum class State : std::uint8_t {
    kNotApplicable,  ///< no judged element that the fault could move
    kNotVisible,     ///< even the largest size is accepted everywhere
    kVisible,
  };
  State state = State::kNotApplicable;
  double size = 0;       ///< kVisible: rejected at this size
  double accepted = 0;   ///< kVisible: accepted everywhere at this size, at most 1 % below
  std::int64_t at = -1;  ///< kVisible: the element that leaves first, as index into the arrays of OutputTruth
  FaultSite site;        ///< kVisible: what the fault touches in that element's row
};

struct FaultFloors {
  PlantedFault fault;
  std::vector<std::vector<Floor>> floors;  ///< [level][output]
};

/// Floors of fault number `fault` of Op::planted_faults. Values under a fault are centre + plant(size) - plant(0),
/// rounded to the output format. Acceptance is monotone in the size almost everywhere; where it is not, the root found
/// is that of the steepest element at small sizes. Elements whose plant(0) is not the truth to a small part of the set
/// (rows that fp64 cannot decide) are left out.
FaultFloors detection_floors(const Op& op, FaultPlanter& planter, std::size_t fault, const Truth& truth,
                             std::span<const JudgedLevel> levels);

/// The same for every fault that the op can plant, parallel to Op::planted_faults.
std::vector<FaultFloors> detection_floors(const Op& op, const Problem& problem, const Truth& truth,
                                          std::span<const JudgedLevel> levels);

}  // namespace assay
