// A case whose parts were changed one by one, made whole again.
#pragma once

#include <optional>

#include "cases/case.h"

namespace assay {

/// The case in canonical form if its parameters fit together. Sources of tensors that the parameters no longer have,
/// and overrides that no longer fit, are dropped.
std::optional<Case> legal_case(Case c);

}  // namespace assay
