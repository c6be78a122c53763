// Whose are a memory checker's findings: runs that share a process, told apart.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/sanitizer_log.h"

namespace assay {

/// A process under a memory checker that makes numbered runs.
struct Watched {
  std::function<bool(std::size_t run)> run;  ///< starts the process if there is none; false: the process has ended
  std::function<bool()> has_spoken;          ///< whether the checker has written anything about this process by now
  std::function<std::string()> close;        ///< ends the process and takes all that was written about it
};

/// The findings of runs 0 ... count - 1, made in as few processes as possible. The checker writes from a process of its
/// own, so a word may come late: a finding is a run's own if no other was made in that process, or if the run alone
/// shows one again. One that comes back nowhere stays with the last run of its process, and says so.
std::vector<std::vector<SanitizerFinding>> findings_by_run(std::size_t count, const Watched& process);

}  // namespace assay
