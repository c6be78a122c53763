// Declared arithmetic as JSON: every enum value by name, so that a record can be read without this source.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "oracle/arithmetic.h"
#include "oracle/json_field.h"

namespace assay {

/// One member per field of Arithmetic; `p_format` is "unknown" if it is not declared; tile_n and splits 0 = unknown.
nlohmann::json to_json(const Arithmetic& arithmetic);
/// Throws InputError naming file and field for a name that no enum has.
Arithmetic arithmetic_from_json(const JsonField& field);
/// Number of undeclared fields (each widens the tolerance to the union of the family).
int unknown_fields(const Arithmetic& arithmetic);

}  // namespace assay
