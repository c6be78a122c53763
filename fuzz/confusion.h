// The confusion matrix: which mode is named for which planted fault, on cases drawn at run time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuzz/parallel.h"
#include "kernels/runner.h"

namespace assay {

struct ConfusionOptions {
  int failures = 6;  ///< failing cases wanted of each fault
  int tries = 150;   ///< runs at most
  std::uint64_t seed = 1;
  unsigned jobs = 1;
  Deadline deadline = {};
};

/// A failing case of a planted fault whose own mode was not named first.
struct Confused {
  std::string kernel, planted, named;  ///< named: empty if the failure stayed unclassified
  bool rival = false;                  ///< the planted mode is among the named mode's rivals
  std::string case_line, evidence;
};

struct Confusion {
  std::map<std::string, std::map<std::string, int>>
      named;  ///< planted mode -> named mode ("" = unclassified) -> failing cases
  std::vector<Confused> confused;
  std::map<std::string, int> quiet;  ///< mutants with fewer failing cases than wanted -> how many they have
  int failures = 0, first = 0, rival = 0, unclassified = 0;
  std::size_t left_out = 0;
};

/// Draws cases for every kernel with an expected mode, which is looked up by `expects` and never shown to the
/// classifier: kernels run under blank names. A third of the lines are normal inputs in plain shapes, a third fresh
/// rows of the suites' plans, a third changed witnesses of any mode with fresh seeds; none is a witness. Bits that
/// change between runs count as failures like any other; crashes are not counted.
Confusion confusion(const std::vector<KernelIdentity>& faulty, const ConfusionOptions& options, const OpenRunner& open);

}  // namespace assay
