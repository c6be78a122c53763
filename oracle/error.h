// The exceptions that libraries may throw, one per exit code; only programs turn them into text and exit.
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

/// Bad input from outside: a malformed case line, a truncated file, a value out of range. Exit code 2.
/// The text names the source (file or "case"), the field and the offending value.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The environment cannot do what was asked: no space, no such program, no device. Exit code 3.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace assay
