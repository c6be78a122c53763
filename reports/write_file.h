// write_file: a file that is either written whole or left as it was.
#pragma once

#include <string>

namespace assay {

/// Writes text to a file by way of a temporary one beside it. Throws EnvironmentError naming it and why if it cannot be
/// written.
void write_file(const std::string& path, const std::string& text);

}  // namespace assay
