// The kernel under test on another case, as a scene of its own.
#pragma once

#include <memory>

#include "failure_catalog/scene.h"

namespace assay {

/// Owns all that its scene refers to.
class SecondScene {
 public:
  /// Nothing where the kernel cannot be asked, refuses the problem, or its runs are spent. Judged up to the first
  /// scene's level.
  static std::unique_ptr<SecondScene> of(const Scene& first, Case c, Problem problem);
  SecondScene(const SecondScene&) = delete;
  SecondScene& operator=(const SecondScene&) = delete;

  const Scene& scene() const { return scene_; }
  /// Some level rejects an element.
  bool fails() const;

 private:
  SecondScene(const Scene& first, Case c, Problem problem, std::vector<Tensor> outputs);

  const Case case_;
  const Problem problem_;
  const Arithmetic declared_;
  const std::vector<Tensor> outputs_;
  const Evaluation evaluation_;
  const Measurement measurement_;
  const std::unique_ptr<Experiment> experiment_;
  const Scene scene_;
};

}  // namespace assay
