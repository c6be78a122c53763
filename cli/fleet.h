// Fleet: the workers behind one command: the program's own kernels, and the mutants of the program beside it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

/// Kernels of this program in a worker of its own, and, if the mutant program stands beside it, its mutants in another.
/// Environment variable ASSAY_MUTANTS names another mutant program.
std::unique_ptr<Runner> open_fleet(std::chrono::milliseconds deadline);

/// argv of the worker program of this program's own kernels, or of the mutants. Throws EnvironmentError if there is no
/// mutant program.
std::vector<std::string> worker_command(bool mutants);

/// Resolves names on the command line: kernel names, `correct` (all kernels that are no mutants), `mutants`.
/// Throws InputError for a name that no worker has.
std::vector<KernelIdentity> choose_kernels(Runner& fleet, const std::vector<std::string>& names);

}  // namespace assay
