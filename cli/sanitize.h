// `assay check --sanitize TOOL`: device kernels under compute-sanitizer, its findings by case.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cases/case.h"
#include "kernels/runner.h"
#include "reports/record.h"

namespace assay {

struct SanitizeOptions {
  std::string tool;  ///< memcheck, racecheck, initcheck or synccheck
  std::chrono::milliseconds deadline{};
};

struct SanitizeItem {
  std::string suite;
  Case c;
};

/// Runs every case on every device kernel of `kernels` that takes it, many in one process, and judges by what the tool
/// reports; outputs are not judged. Throws EnvironmentError without compute-sanitizer, InputError if no kernel runs on
/// a device.
std::vector<Record> sanitize(const SanitizeOptions& options, const std::vector<KernelIdentity>& kernels,
                             const std::vector<SanitizeItem>& items);

}  // namespace assay
