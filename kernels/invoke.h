// Invoke: one kernel call, with everything it may do wrong inside a process turned into an outcome.
#pragma once

#include <functional>

#include "kernels/runner.h"

namespace assay {

/// Calls the kernel on memory that the caller owns and checks; fills status, reason, declared, facts and what the
/// kernel itself found broken. Exceptions become outcomes (kernels/run_error.h); all but those of that file are
/// kCrashed.
RunOutcome invoke(const Kernel& kernel, const Call& call);

/// The same for a function that is no linked kernel's: fills status, reason and facts.
RunOutcome invoke(const std::function<RunFacts(const Call&)>& run, const Call& call);

/// Identities of the kernels linked into this program, sorted by name.
std::vector<KernelIdentity> linked_kernels();

}  // namespace assay
