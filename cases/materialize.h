// Case -> bits: runs recipes, reads files, applies overrides, fills unused storage with poison.
#pragma once

#include "cases/case.h"
#include "oracle/op.h"

namespace assay {

/// The case's inputs and output layouts. Throws InputError for a bad file, index or recipe argument.
Problem materialize(const Case& c);

/// One of its inputs, of Op::inputs for its parameters; the same errors.
Tensor materialize_input(const Case& c, const InputSpec& spec);

}  // namespace assay
