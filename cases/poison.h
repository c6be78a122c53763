// What stands in storage that no element uses.
#pragma once

#include <cstdint>

#include "cases/case.h"
#include "oracle/format.h"

namespace assay {

/// The code that fills unused storage. Formats without NaN or infinity take their nearest relative: infinity becomes
/// NaN, in integer formats both become the largest number; e8m0 has no zero and takes its smallest number. `tag` is
/// -208, or 208 where there is no sign, so that a stray value is recognised in an output.
std::uint64_t poison_code(Format format, Poison poison);

}  // namespace assay
