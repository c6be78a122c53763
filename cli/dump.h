// A run's tensors as the safetensors file that `assay judge` reads.
#pragma once

#include <filesystem>
#include <vector>

#include "cases/case.h"
#include "oracle/arithmetic.h"
#include "oracle/op.h"

namespace assay {

/// Writes the inputs that come from sources (q, k, v, mask) and the outputs (o, lse), by role, in C order of their logical
/// shapes; `__metadata__` holds the case line and the declared arithmetic. Unused elements of a shape hold what storage
/// held. Throws EnvironmentError if the file cannot be written.
void write_dump(const std::filesystem::path& path, const Case& c, const Problem& problem,
                const std::vector<Tensor>& outputs, const Arithmetic& declared);

}  // namespace assay
