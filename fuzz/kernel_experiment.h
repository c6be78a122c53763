// The experiment of one verdict: the kernel under test through its runner, a bounded number of times.
#pragma once

#include <string>

#include "failure_catalog/experiment.h"
#include "kernels/runner.h"

namespace assay {

class KernelExperiment final : public Experiment {
 public:
  static constexpr int kMostRuns = 16;

  /// All three must outlive it.
  KernelExperiment(Runner& runner, std::string_view kernel, const Problem& problem)
      : runner_(runner), kernel_(kernel), problem_(problem) {}

  std::optional<std::vector<Tensor>> run(const Problem& problem) override;
  std::optional<std::vector<Tensor>> rerun(Freshness freshness) override;
  const Arithmetic& declared() const override { return declared_; }
  std::unique_ptr<Experiment> about(const Problem& problem) const override {
    return std::make_unique<KernelExperiment>(runner_, kernel_, problem);
  }

 private:
  Runner& runner_;
  std::string_view kernel_;
  const Problem& problem_;
  Arithmetic declared_;
  int runs_ = 0;
};

}  // namespace assay
