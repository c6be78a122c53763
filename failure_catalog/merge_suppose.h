// Suppositions about the merge of partial states: which parts took part.
#pragma once

#include <functional>
#include <string>

#include "failure_catalog/mode.h"
#include "oracle/ops/merge/problem.h"

namespace assay {

/// Only the parts for which `takes` is true are merged; the scene's op is merge.
Supposition suppose_parts(const Scene& scene, std::function<bool(std::int32_t part)> takes, std::string text,
                          double cost = 0);

}  // namespace assay
