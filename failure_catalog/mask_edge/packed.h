// Sequence boundaries of a packed batch that a kernel does not see.
#pragma once

#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// Nothing unless the batch is packed, with two or more sequences and no masks by position.
std::vector<Supposition> packed_boundaries_ignored(const Scene& scene);

}  // namespace assay
