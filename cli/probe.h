// Hardware probes for `assay doctor`: the tensor cores against their model, the scalar approximations against their
// promises.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

struct ProbeSummary {
  bool ok = false;   ///< no bit differs from the model, no error beyond what the bounds take
  std::string text;  ///< one line
  nlohmann::ordered_json document;
};

/// `full`: all 2^32 arguments of every function and a million elements of every kind of operand, in about a minute;
/// otherwise a sample in about a second. Throws EnvironmentError without a Hopper device.
ProbeSummary probe_device(bool full);

}  // namespace assay
