// How long the fuzz program takes to find a planted fault, from an empty corpus.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

struct FindOptions {
  std::string engine;  ///< assay_mutants_fuzz, or one that is instrumented for coverage
  std::vector<std::string> arguments;  ///< further ones for every process: --no-signal, ...
  std::vector<std::uint64_t> seeds{1, 2, 3};
  double limit = 60;  ///< for one search: seconds of one core, whatever else runs on the machine
  unsigned jobs = 1;
};

/// One search; seconds are those of one core (processor time); not found: the limit.
struct Search {
  bool found = false;
  double seconds = 0;
  std::int64_t executions = 0;  ///< of the kernel; 0 where it was not found
  std::string verdict;          ///< what was found, one line
};

struct TimeToFind {
  KernelIdentity mutant;
  std::vector<Search> searches;  ///< parallel to FindOptions::seeds
  double median() const;         ///< of the seconds; the limit if less than half of the searches found it
};

/// Searches for each mutant in a process of its own, `jobs` at a time. Throws EnvironmentError if a process ends without
/// having found or searched.
std::vector<TimeToFind> time_to_find(const std::vector<KernelIdentity>& mutants, const FindOptions& options);

}  // namespace assay
