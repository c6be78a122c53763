// Which run of keys is missing from a row, from its errors alone.
#pragma once

#include <optional>
#include <utility>

#include "failure_catalog/scene.h"

namespace assay {

/// The run [first, last] of keys whose absence fits the errors of sampled row `n` best; nothing if its keys are too
/// many to try or too few to miss some.
std::optional<std::pair<std::int32_t, std::int32_t>> missing_run(const Scene& scene, std::size_t n);

}  // namespace assay
