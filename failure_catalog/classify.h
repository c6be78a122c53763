// Classifier: which failure mode explains a rejected output best.
#pragma once

#include <optional>

#include "failure_catalog/mode.h"

namespace assay {

struct Classification {
  const Mode* mode = nullptr;
  Diagnosis diagnosis;
};

/// The mode with the largest confidence (the earlier id wins a tie), or nothing: the failure stays unclassified.
std::optional<Classification> classify(const Scene& scene);

}  // namespace assay
