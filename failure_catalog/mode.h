// Mode: a named way to be wrong, as data with proof: detector, witness case, mutant. One folder per mode.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "oracle/measure.h"
#include "oracle/op.h"

namespace assay {

/// What a detector may look at: never a kernel's name.
struct Scene {
  const Case& c;
  const Problem& problem;
  const Evaluation& evaluation;
  const Measurement& measurement;
  const std::vector<Tensor>& outputs;
};

struct Diagnosis {
  double confidence = 0;    ///< in (0, 1]; the classifier takes the largest
  std::string evidence;     ///< one sentence with numbers
};

struct Mode {
  std::string_view name;    ///< the folder's name and the id in every report
  std::string_view id;      ///< "M01"
  std::string_view title;
  std::optional<Diagnosis> (*detect)(const Scene&);
};

struct RegisterMode {
  explicit RegisterMode(const Mode& mode);
};
/// In the order of failure_modes.md: non-finite, zero, unused data, membership, weights, precision.
std::vector<const Mode*> all_modes();
const Mode* find_mode(std::string_view name);

}  // namespace assay
