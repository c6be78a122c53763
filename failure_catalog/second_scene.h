// The kernel under test on another case, as a scene of its own.
#pragma once

#include <memory>

#include "failure_catalog/scene.h"

namespace assay {

/// Owns all that its scene refers to.
class SecondScene {
 public:
  /// Nothing where the kernel cannot be asked or refuses the problem. Judged up to the first scene's level; its
  /// experiment has runs of its own.
  static std::unique_ptr<SecondScene> of(const Scene& first, Case c, Problem problem);
  SecondScene(const SecondScene&) = delete;
  SecondScene& operator=(const SecondScene&) = delete;

  const Scene& scene() const { return scene_; }
  /// Some level rejects an element.
  bool fails() const;

 private:
  SecondScene(const Experiment& experiment, Case c, Problem problem);

  const Case case_;
  const Problem problem_;
  Arithmetic declared_;
  std::vector<Tensor> outputs_;
  Evaluation evaluation_;
  Measurement measurement_;
  const std::unique_ptr<Experiment> experiment_;
  const Scene scene_;
};

}  // namespace assay
