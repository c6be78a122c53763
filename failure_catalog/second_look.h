// A second look: what a kernel does on siblings of a case whose failure shows too little to be named.
#pragma once

#include "failure_catalog/classify.h"

namespace assay {

/// Runs the kernel on siblings of the scene's case and adds up what speaks for each mode there and at first, until that
/// is enough for one of them. That one is named, with the evidence of the look that has most to say for it; other modes
/// that a look named are its rivals. A name comes from outputs alone: where no sibling fails in a way that a hypothesis
/// explains, the first look stands. The scene must have an experiment.
std::optional<Classification> second_look(const Scene& scene, Look first);

}  // namespace assay
