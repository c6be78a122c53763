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
/// run where a mode offers one and the scene has an experiment. Where that says nothing, or rests on so little that one
/// of all hypotheses may fit by chance, the kernel is asked about the case's siblings (second_look.h).
std::optional<Classification> classify(const Scene& scene);

/// What one input says of its failure.
struct Look {
  std::optional<Classification> found;
  /// How much speaks for it, in nats: -log of the chance that a hypothesis of a wrong mode fits as well. Signatures
  /// have kEnough: their confidence says what is behind them.
  double support = 0;
  static constexpr double kEnough = 4.6;  ///< a chance of 1 in 100
};
Look look_at(const Scene& scene);

/// The explaining hypothesis of one mode with the smallest residual, as a diagnosis.
std::optional<Diagnosis> diagnose(const Mode& mode, const Scene& scene);

}  // namespace assay
