// Hypotheses that say which step of a kernel differs from its declaration: what weight and precision modes are made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "failure_catalog/mode.h"
#include "oracle/ops/merge/row_replay.h"
#include "oracle/ops/softmax/row_replay.h"

namespace assay {

/// Collects the hypotheses of one mode about one scene. `what` is the sentence; how much it explains is added to it.
class Deviations {
 public:
  explicit Deviations(const Scene& scene);

  /// The case as one of the ops; null for the others.
  const AttentionParams* attention() const { return attention_; }
  const AttentionProblem& problem() const { return scene_.attention()->problem; }
  const SoftmaxReplay* softmax() const { return softmax_.get(); }
  const MergeReplay* merge() const { return merge_.get(); }
  /// The declared arithmetic, with the fields filled in that an attention replay needs.
  const Arithmetic& structure() const;

  void add(const Deviation& d, std::string what, double cost = 0);
  void add(const SoftmaxDeviation& d, std::string what, double cost = 0);
  void add(const MergeDeviation& d, std::string what, double cost = 0);

  /// With a parameter: `what` is told the fitted value with its error, "1.000100(2)".
  using What = std::function<std::string(const std::string& value)>;
  void add(std::function<Deviation(double)> d, const Parameter& range, std::string name, What what, double cost = 0);
  void add(std::function<SoftmaxDeviation(double)> d, const Parameter& range, std::string name, What what,
           double cost = 0);
  void add(std::function<MergeDeviation(double)> d, const Parameter& range, std::string name, What what,
           double cost = 0);

  std::vector<Supposition> take() { return std::move(all_); }

 private:
  void add(Trial::PredictAt predict, std::string what, double cost);
  void add(Trial::PredictAt predict, const Parameter& range, std::string name, What what, double cost);

  const Scene& scene_;
  const AttentionParams* attention_ = nullptr;
  std::shared_ptr<const SoftmaxReplay> softmax_;
  std::shared_ptr<const MergeReplay> merge_;
  std::vector<Supposition> all_;
};

/// x of a key as the problem defines it.
double defined_logit(const AttentionParams& params, const ReplayKey& key);

/// "1.000100(2)": the error in units of the last digit.
std::string with_error(double value, double error);

}  // namespace assay
