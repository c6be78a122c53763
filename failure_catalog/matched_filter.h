// Matched filters: faults with a size that no single element proves, seen over all elements together (probes.md 1).
#pragma once

#include <string>
#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// One parameter's estimate on one scene.
struct FilteredMode {
  const Mode* mode = nullptr;
  std::string parameter;
  Filtered result;
  /// Beyond six standard errors and what errors inside tau could shift it by.
  bool significant() const;
};

/// Of every tangent of every mode, on rows spread over the outputs.
std::vector<FilteredMode> filter_modes(const Scene& scene);

/// For outputs that no element proves wrong: the significant parameter that takes most off the squared errors, and its
/// rivals, as one sentence; none if no parameter is significant. Evidence, no proof: independent rounding is plausible
/// only.
std::vector<std::string> filter_warnings(const Scene& scene);

}  // namespace assay
