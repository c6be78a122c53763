// Relations between two runs of one kernel: most must give the same bits and need no oracle; two keep the answer but
// not the roundings, and are judged against the acceptance sets of both problems.
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
  /// Not bit-exact: the second problem has the same keys in another order, or logits that round elsewhere. Each run
  /// must lie in the sets of its own truth, and with y, t, tau, r: output, truth, tolerance and radius of an element in
  /// each run, |(y2 - t2) - (y1 - t1)| <= tau1 + r1 + tau2 + r2 + half an ulp of each (at T0: a level's centre is not
  /// the truth). What it shows beyond one run is a fault that the first problem hides.
  bool exact = true;
};

struct Relation {
  std::string_view name;
  std::string_view statement;
  /// Nothing where the case leaves the relation no meaning, or arithmetic does not keep it exact.
  std::optional<Related> (*relate)(const Case& c, const Problem& problem);
};

/// For attention cases whose rows are all judged. The exact ones hold for every kernel that treats sequences, heads and
/// channels alike: each output element is computed from the same numbers by the same steps. The others, logit_shift and
/// reverse_keys, hold for every kernel that is right.
const std::vector<Relation>& relations();

/// Runs the related problem and compares with `first`, the outputs of the case; what differs ("expand_heads: o[0,1,2,3]
/// is 0x3f80, not 0x3f00"), or "". Nothing is compared if the kernel declares another arithmetic for the second
/// problem, or does not take it. A relation that is not exact is not asked where the first run fails by itself.
std::string violation(const Relation& relation, const Case& c, const Problem& problem, std::string_view kernel,
                      const RunOutcome& first, Runner& runner);

}  // namespace assay
