// Fingerprint (probes.md 5): how a kernel computes and which conventions it follows, each by a small probe, beside what
// it declares or was asked for.
#pragma once

#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

struct Trait {
  std::string name;      ///< "P", "P V", "LSE base", ...
  std::string measured;  ///< in words; "not measured: ..." where the kernel declines the probe
  std::string expected;  ///< what the declaration or the case asks for; empty: nothing says
  bool agrees = true;    ///< false: measured and known to differ from `expected`
};

/// The traits of one attention kernel. Throws InputError for kernels of other ops, and for one that takes none of the
/// stores and formats that probes are made in.
std::vector<Trait> fingerprint(Runner& runner, const KernelIdentity& kernel);

}  // namespace assay
