// Classifier: which failure mode explains a rejected output best, and which others would explain it as well.
#pragma once

#include <optional>

#include "failure_catalog/mode.h"

namespace assay {

struct Classification {
  const Mode* mode = nullptr;
  Diagnosis diagnosis;
};

/// The mode with the largest confidence, or nothing: the failure stays unclassified. Of hypotheses that explain the
/// outputs the one with the smallest residual is taken; rivals that predict the same here are named, after a follow-up
/// run where a mode offers one and the scene has an experiment.
std::optional<Classification> classify(const Scene& scene);

/// The explaining hypothesis of one mode with the smallest residual, as a diagnosis.
std::optional<Diagnosis> diagnose(const Mode& mode, const Scene& scene);

}  // namespace assay
