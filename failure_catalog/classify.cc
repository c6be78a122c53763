// Asks every mode's detector.
#include "failure_catalog/classify.h"

namespace assay {

std::optional<Classification> classify(const Scene& scene) {
  std::optional<Classification> best;
  for (const Mode* mode : all_modes()) {
    const std::optional<Diagnosis> diagnosis = mode->detect(scene);
    if (diagnosis && (!best || diagnosis->confidence > best->diagnosis.confidence)) best = {mode, *diagnosis};
  }
  return best;
}

}  // namespace assay
