// Ways to take the factors of quantised q, k and v from the wrong head or block.
#pragma once

#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// For cases with factors; empty for others.
std::vector<Supposition> wrong_factors(const Scene& scene);

}  // namespace assay
