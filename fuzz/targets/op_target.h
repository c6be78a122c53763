// Op target: fuzz inputs are cases of one op, run on its kernels down the straight line.
#pragma once

#include <memory>
#include <string>

#include "fuzz/targets/target.h"

namespace assay {

/// Throws InputError for a kernel that there is none of, EnvironmentError if no kernel is left.
std::unique_ptr<Target> open_op_target(const std::string& op, const TargetOptions& options);

/// Every regime of the op by name, a line each.
std::string regime_list(const std::string& op);

}  // namespace assay
