// Invoke: one kernel call, with everything it may do wrong inside a process turned into an outcome.
#pragma once

#include <span>

#include "kernels/runner.h"

namespace assay {

/// Calls the kernel on memory that the caller owns and checks; fills status, reason, declared and facts. Exceptions of
/// the kernel become kCrashed.
RunOutcome invoke(const Kernel& kernel, const Params& params, std::span<const TensorView> inputs,
                  std::span<const OutputView> outputs);

/// Identities of the kernels linked into this program, sorted by name.
std::vector<KernelIdentity> linked_kernels();

}  // namespace assay
