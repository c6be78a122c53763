// Relations between two runs of one kernel that must give the same bits; none needs an oracle or a tolerance.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "kernels/runner.h"
#include "oracle/op.h"

namespace assay {

/// A second problem, and what its outputs must be given those of the first.
struct Related {
  Problem problem;
  /// The index in the first run's output of the same role whose value index `i` of the second's must hold.
  std::function<std::vector<std::int64_t>(std::vector<std::int64_t> i)> origin;
  double factor = 1;  ///< of o; elements whose product leaves the normal numbers are not compared
};

struct Relation {
  std::string_view name;
  std::string_view statement;
  /// Nothing where the case leaves the relation no meaning, or arithmetic does not keep it exact.
  std::optional<Related> (*relate)(const Case& c, const Problem& problem);
};

/// For attention cases whose rows are all judged. Exact for every kernel that treats sequences, heads and channels
/// alike: each output element is computed from the same numbers by the same steps.
const std::vector<Relation>& relations();

/// Runs the related problem and compares with `first`, the outputs of the case; what differs ("expand_heads: o[0,1,2,3]
/// is 0x3f80, not 0x3f00"), or "". Nothing is compared if the kernel declares another arithmetic for the second
/// problem, or does not take it.
std::string violation(const Relation& relation, const Case& c, const Problem& problem, std::string_view kernel,
                      const RunOutcome& first, Runner& runner);

}  // namespace assay
