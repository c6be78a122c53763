// Durations as people write them: "90", "90s", "10m", "2h", "3d".
#pragma once

#include <string>

namespace assay {

/// Seconds, above 0. Throws InputError "<field> <text>: ...".
double read_duration(const std::string& text, const std::string& field);

}  // namespace assay
