// Values of single elements as text: `set=k[0,0,17,3]:nan`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cases/case.h"
#include "oracle/op.h"

namespace assay {

/// Reads `role[i,j,...]:value` for one of the tensors in `specs` that a recipe fills; value and index are checked
/// against format and shape and made canonical. Throws InputError naming the text.
Override parse_override(std::string_view text, std::span<const InputSpec> specs);
std::string print_override(const Override& item);

/// The code of a value: a number (rounded to nearest even; beyond the largest finite number is an error), nan, inf,
/// -inf, max, -max, min_sub, -min_sub, or 0x and the code itself. Throws InputError naming `field` and the value.
std::uint64_t override_code(std::string_view field, Format format, std::string_view value);

}  // namespace assay
