// What each rule says of kernels' outputs: elements outside T0, T1, T2 and outside allclose, one case and many kernels.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cases/case.h"
#include "kernels/runner.h"
#include "oracle/truth.h"

namespace assay {

/// atol = rtol of the allclose rules, as tests of 16-bit kernels set them.
inline constexpr std::array<double, 2> kAllcloseTolerances{1e-2, 1e-3};

/// One output of one kernel.
struct RuleCounts {
  struct AtLevel {
    Level level = Level::kT0;
    std::int64_t rejected = 0;        ///< outside the set of this level or of one below
    double median_tau = 0;            ///< of this level alone
    double gain = 0, gain_error = 0;  ///< TierMeasure's, of this level alone; 0 at T0
  };
  std::string role;
  std::int64_t judged = 0;
  std::vector<AtLevel> levels;  ///< ascending, those that the declaration reaches
  std::array<std::int64_t, kAllcloseTolerances.size()> outside{};
};

struct KernelCounts {
  std::string kernel;
  std::string no_outputs;  ///< why there are none: skipped, crashed, hung; else empty
  std::vector<RuleCounts> outputs;
};

/// Runs each kernel on the case's bits. Kernels with the same declaration share one evaluation.
std::vector<KernelCounts> rule_counts(const Case& c, const std::vector<std::string>& kernels, Runner& runner,
                                      Level level);

}  // namespace assay
