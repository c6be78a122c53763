// Fresh cases of an op, drawn at run time from what its suites combine; no line of a suite and no witness is read.
#pragma once

#include <optional>
#include <string_view>

#include "fuzz/mutate.h"

namespace assay {

/// Each factor of one of the op's plans at random, then up to three mutations. Nothing if the draw is no legal case or
/// too large. An op without a plan starts from its default case.
std::optional<Case> fresh_case(std::string_view op, const Choose& choose, const MutationLimits& limits);

}  // namespace assay
