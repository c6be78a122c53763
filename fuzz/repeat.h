// Repeated runs: the bits of an output may depend neither on the run nor on bytes that no element uses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "kernels/runner.h"
#include "oracle/op.h"

namespace assay {

/// How often one case is run on one kernel.
struct Repeats {
  int runs = 1;    ///< every second one with other bytes in unused storage and in memory handed out without content
  int reruns = 0;  ///< of a case that fails, in a fresh process
};

/// The first run and what the later ones say against it.
struct RepeatedRun {
  RunOutcome outcome;      ///< the first run's, or that of the first that did not end well
  std::string difference;  ///< "y[0,3] is 0x3f80 and 0x3f81, ...": empty if all wrote the same bits
  std::string_view mode = {};  ///< what of the catalogue that is: "race", "history" or "unused_data_poison"
};

/// `refilled`: the problem with other bytes in unused storage, for the second, fourth, ... run; not read if runs = 1.
/// `neighbour`: another call, made before one more run if runs > 1; the kernel may refuse it.
RepeatedRun run_repeatedly(Runner& runner, std::string_view kernel, const Problem& problem, const Problem& refilled,
                           int runs, const Problem* neighbour = nullptr);

/// Runs the problem `times` times in a fresh process and compares with `first`; what differs, or "".
std::string rerun_difference(Runner& runner, std::string_view kernel, const Problem& problem,
                             const std::vector<Tensor>& first, int times);

/// The case's problem with other bytes in unused storage: numbers where there were NaNs, NaNs everywhere else.
Problem refilled(const Case& c);

/// A call of the same shapes with other numbers, and fewer keys and other pages where those are data: what a kernel that
/// keeps state would carry over.
Problem neighbour(const Case& c);

/// First element in which two runs' outputs differ, both codes, and how many differ. Layouts must be equal.
std::optional<std::string> bit_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace assay
