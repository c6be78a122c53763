// The kill matrix: which rule sees which planted fault, on our suites and on the inputs that each foreign judge is used
// to.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/kill_level.h"
#include "fuzz/parallel.h"
#include "kernels/runner.h"

namespace assay {

struct KillOptions {
  std::vector<std::string> suites{
      "smoke",       "witness", "probe",   "edge",
      "adversarial", "dense",   "llm_like"};  ///< those that exist; "probe" has a level of its own
  std::size_t cases = 24;  ///< of each suite and for each sound kernel, evenly spaced among those it takes
  std::uint64_t seed = 1;  ///< of the customary inputs
  std::vector<std::string> customary = {};  ///< judges whose customary inputs are run; empty: all
  unsigned jobs = 1;
  Deadline deadline = {};
};

/// What one rule says of a mutant's runs on some inputs. A rule that rejects the sound kernel on a case has not told
/// the mutant from it.
struct Votes {
  int cases = 0;   ///< with an opinion
  int killed = 0;  ///< the mutant's outputs are rejected, the sound kernel's are not
  int alarms = 0;  ///< the sound kernel's outputs are rejected
};

struct MutantResult {
  KernelIdentity mutant;
  int cases = 0;                                     ///< of our suites that it ran
  int changed = 0;                                   ///< and that gave other bits than the sound kernel, or none
  std::array<int, kKillLevelCount> killed{};         ///< cases of our suites whose weakest killing level this is
  std::array<std::string, kKillLevelCount> first{};  ///< the first such case line
  int warned = 0;  ///< cases looked at again because no level up to T1 saw them: those that give a warning
  int looked_at = 0;
  double largest_error = 0;                  ///< of o, over the judges' customary inputs
  std::map<std::string, Votes> on_suites;    ///< judge -> its votes on our suites' cases
  std::map<std::string, Votes> on_own;       ///< judge -> its votes on its own inputs
  std::map<std::string, Votes> ours_on_own;  ///< judge -> our votes (exit 1) on its inputs

  std::optional<KillLevel> weakest() const;
};

struct KillMatrix {
  std::vector<MutantResult> mutants;
  std::size_t left_out = 0;  ///< pieces of work that the deadline cut off
};

/// Runs every mutant (identities of host or device mutants, `base` filled in) beside its sound kernel. The result
/// depends on the options alone, not on the threads.
KillMatrix kill_matrix(const std::vector<KernelIdentity>& mutants, const KillOptions& options, const OpenRunner& open);

/// At most `count` of the suite's cases that the kernel takes by op and format, evenly spaced. Empty for a suite that
/// does not exist.
std::vector<Case> suite_sample(const std::string& suite, const KernelIdentity& kernel, std::size_t count);

}  // namespace assay
