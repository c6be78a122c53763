// Hypotheses from deviations, for each op.
#include "failure_catalog/deviations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/exp64.h"

namespace assay {
namespace {

std::string explained(const Fit& fit) {
  return fmt::format(
      "; that explains {} of {} rejected elements and {:.3g} of the squared residual {:.3g} (noise {:.3g})",
      fit.loud_explained, fit.loud, fit.before - fit.after, fit.before, fit.expected);
}

}  // namespace

Deviations::Deviations(const Scene& scene) : scene_(scene) {
  if (scene.attention() != nullptr) attention_ = &scene.attention()->problem.params();
  if (scene.c.op == "softmax") softmax_ = std::make_shared<SoftmaxReplay>(scene.problem, scene.declared);
  if (scene.c.op == "merge") merge_ = std::make_shared<MergeReplay>(scene.problem, scene.declared);
}

const Arithmetic& Deviations::structure() const {
  return attention_ != nullptr ? scene_.replay()->structure() : scene_.declared;
}

void Deviations::add(Trial::PredictAt predict, std::string what, double cost) {
  all_.push_back({.predict = std::move(predict),
                  .evidence = [what = std::move(what)](const FitAt& at) { return what + explained(at.fit); },
                  .cost = cost});
}

void Deviations::add(Trial::PredictAt predict, const Parameter& range, std::string name, What what, double cost) {
  all_.push_back(
      {.predict = std::move(predict),
       .evidence = [what = std::move(what)](
                       const FitAt& at) { return what(with_error(at.value, at.standard_error)) + explained(at.fit); },
       .parameter = range,
       .parameter_name = std::move(name),
       .cost = cost});
}

void Deviations::add(const Deviation& d, std::string what, double cost) {
  add([&scene = scene_, d](std::size_t row, double) { return scene.replay()->predict(row, d, scene.evaluation.truth); },
      std::move(what), cost);
}

void Deviations::add(const SoftmaxDeviation& d, std::string what, double cost) {
  add([&scene = scene_, replay = softmax_, d](std::size_t row,
                                              double) { return replay->predict(row, d, scene.evaluation.truth); },
      std::move(what), cost);
}

void Deviations::add(const MergeDeviation& d, std::string what, double cost) {
  add([&scene = scene_, replay = merge_, d](std::size_t row,
                                            double) { return replay->predict(row, d, scene.evaluation.truth); },
      std::move(what), cost);
}

void Deviations::add(std::function<Deviation(double)> d, const Parameter& range, std::string name, What what,
                     double cost) {
  add([&scene = scene_, d = std::move(d)](
          std::size_t row, double t) { return scene.replay()->predict(row, d(t), scene.evaluation.truth); },
      range, std::move(name), std::move(what), cost);
}

void Deviations::add(std::function<SoftmaxDeviation(double)> d, const Parameter& range, std::string name, What what,
                     double cost) {
  add([&scene = scene_, replay = softmax_, d = std::move(d)](
          std::size_t row, double t) { return replay->predict(row, d(t), scene.evaluation.truth); },
      range, std::move(name), std::move(what), cost);
}

void Deviations::add(std::function<MergeDeviation(double)> d, const Parameter& range, std::string name, What what,
                     double cost) {
  add([&scene = scene_, replay = merge_, d = std::move(d)](
          std::size_t row, double t) { return replay->predict(row, d(t), scene.evaluation.truth); },
      range, std::move(name), std::move(what), cost);
}

double defined_logit(const AttentionParams& p, const ReplayKey& key) {
  const double y = key.scale_q * key.k_scale * key.score, cap = static_cast<double>(p.softcap);
  return (cap > 0 ? cap * tanh64(y / cap) : y) + key.alibi + key.additive;
}

std::string with_error(double value, double error) {
  if (!(error > 0) || !std::isfinite(error) || error > std::abs(value)) return fmt::format("{:.4g}", value);
  int digits = 0;
  double unit = error;
  while (unit < 1 && digits < 12) unit *= 10, ++digits;
  return fmt::format("{:.{}f}({:.0f})", value, digits, std::max(1.0, unit));
}

}  // namespace assay
