// A tolerance on |y - r| beside the bound: how far apart they are, and which wrong outputs it would let pass.
#include "reports/tolerance_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "failure_catalog/judges/allclose.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double reference_of(const OutputTruth& truth, std::size_t i) { return round_to(Format::kFp32, truth.mid[i]); }
double width_of(const Rule& rule, double reference) { return rule.atol + rule.rtol * std::abs(reference); }

/// Planted values rounded to the output's format; the rounded truth where the fault has no value.
Tensor tensor_of(const OutputTruth& truth, const std::vector<double>& planted) {
  Tensor t{.layout = truth.layout,
           .bytes = std::vector<std::byte>(static_cast<std::size_t>(truth.layout.storage_bytes()))};
  for (std::size_t i = 0; i < truth.element.size(); ++i)
    store_code(t.bytes.data(), t.layout.format, truth.element[i],
               encode(t.layout.format, std::isnan(planted[i]) ? truth.mid[i] : planted[i]));
  return t;
}

/// The evaluation with an acceptance set for output `which` only: all others accept everything.
Evaluation only(const Evaluation& evaluation, std::size_t which) {
  Evaluation e = evaluation;
  for (std::size_t k = 0; k < e.bound.outputs.size(); ++k) {
    if (k == which) continue;
    std::fill(e.bound.outputs[k].tau.begin(), e.bound.outputs[k].tau.end(), kInf);
    std::fill(e.bound.outputs[k].also.begin(), e.bound.outputs[k].also.end(), kAnything);
  }
  return e;
}

/// That, with a tau whose set is the rule's: half a unit less than its width, since acceptance rounds.
Evaluation as_rule(const Evaluation& evaluation, std::size_t which, const Rule& rule) {
  Evaluation e = only(evaluation, which);
  e.bound.tiers.clear();
  const OutputTruth& truth = e.truth.outputs[which];
  OutputBound& bound = e.bound.outputs[which];
  for (std::size_t i = 0; i < truth.mid.size(); ++i) {
    const double width = width_of(rule, reference_of(truth, i));
    bound.tau[i] = std::max(0.0, width - ulp(truth.layout.format, std::abs(truth.mid[i]) + width) / 2);
    bound.also[i] = 0;
  }
  return e;
}

/// The fault moves what a perfect kernel gives at this level by planted - unplanted.
bool rejects(const JudgedOutput& judged, const std::vector<double>& planted, const std::vector<double>& unplanted) {
  for (std::size_t i = 0; i < judged.sets.size(); ++i) {
    const double value = judged.centre[i] + (planted[i] - unplanted[i]);
    if (!std::isnan(value) && !accepts(judged.sets[i], encode(judged.sets[i].format, value))) return true;
  }
  return false;
}

std::vector<WrongReport> known_wrong(const Op& op, const Problem& problem, const Evaluation& evaluation,
                                     const Rule& rule) {
  std::vector<WrongReport> all;
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const std::vector<KnownWrong> by_bound = op.known_wrong(problem, only(evaluation, k));
    const std::vector<KnownWrong> by_rule = op.known_wrong(problem, as_rule(evaluation, k, rule));
    all.resize(by_bound.size());
    for (std::size_t w = 0; w < all.size(); ++w) {
      if (by_bound[w].applicable) all[w].name = by_bound[w].name;
      all[w].bound_rejects.push_back(by_bound[w].rejected);
      all[w].rule_passes.push_back(!by_rule[w].rejected);
    }
  }
  std::erase_if(all, [](const WrongReport& wrong) { return wrong.name.empty(); });
  return all;
}

void add_planted(const Op& op, const Problem& problem, const Truth& truth, const JudgedLevel& strictest,
                 const Rule& rule, std::vector<WrongReport>& all) {
  const std::vector<PlantedFault> faults = op.planted_faults();
  const std::unique_ptr<FaultPlanter> planter = fault_planter(op, problem);
  for (std::size_t f = 0; f < faults.size(); ++f) {
    const double whole = std::min(1.0, faults[f].largest);
    const PlantedOutputs unplanted = planter->plant(f, 0), planted = planter->plant(f, whole);
    if (planted.empty() || unplanted.empty()) continue;
    WrongReport wrong{
        .name = fmt::format("{}, size {}", faults[f].name, whole), .bound_rejects = {}, .rule_passes = {}};
    for (std::size_t k = 0; k < truth.outputs.size(); ++k) {
      const OutputTruth& t = truth.outputs[k];
      wrong.bound_rejects.push_back(rejects(strictest.outputs[k], planted[k], unplanted[k]));
      wrong.rule_passes.push_back(allclose(t, tensor_of(t, planted[k]), rule.atol, rule.rtol).passes());
    }
    all.push_back(std::move(wrong));
  }
}

}  // namespace

JudgedLevel rule_level(const Truth& truth, const Rule& rule) {
  JudgedLevel level{.name = fmt::format("atol {} rtol {}", rule.atol, rule.rtol), .outputs = {}};
  for (const OutputTruth& t : truth.outputs) {
    const Format format = t.layout.format;
    JudgedOutput out;
    for (std::size_t i = 0; i < t.mid.size(); ++i) {
      const bool number = (t.classes[i] & (kNumber | kZero)) != 0 && std::isfinite(t.radius[i]);
      const double r = number ? reference_of(t, i) : 0, width = width_of(rule, r);
      std::uint64_t low = encode(format, r - width), high = encode(format, r + width);
      if (!(std::abs(decode(format, low) - r) <= width)) low = next_up(format, low);
      if (!(std::abs(decode(format, high) - r) <= width)) high = next_down(format, high);
      out.sets.push_back({format, kNumber, decode(format, low), decode(format, high)});
      out.centre.push_back(number ? t.mid[i] : std::numeric_limits<double>::quiet_NaN());
    }
    level.outputs.push_back(std::move(out));
  }
  return level;
}

RuleReport rule_report(const Op& op, const Problem& problem, const Evaluation& evaluation,
                       const std::vector<JudgedLevel>& bound, const Rule& rule) {
  RuleReport report{.rule = rule, .outputs = {}, .wrong = known_wrong(op, problem, evaluation, rule)};
  const Truth& truth = evaluation.truth;
  add_planted(op, problem, truth, bound.back(), rule, report.wrong);
  const JudgedLevel level = rule_level(truth, rule);
  for (std::size_t k = 0; k < truth.outputs.size(); ++k) {
    const OutputTruth& t = truth.outputs[k];
    RuleOutput out;
    const JudgedOutput& legal = bound.back().outputs[k];
    for (std::size_t i = 0; i < t.mid.size(); ++i) {
      if (std::isnan(legal.centre[i])) continue;
      ++out.numbers;
      const Acceptance& set = legal.sets[i];
      const Acceptance& passed = level.outputs[k].sets[i];
      out.legal_outside += round_to(set.format, set.low) < passed.low || round_to(set.format, set.high) > passed.high;
    }
    const auto add = [&](const std::vector<double>& tau) {
      std::vector<double> looseness;
      for (std::size_t i = 0; i < t.mid.size(); ++i)
        looseness.push_back(std::isnan(legal.centre[i]) || !(tau[i] > 0) ? kInf
                                                                         : width_of(rule, reference_of(t, i)) / tau[i]);
      out.looseness.push_back(spread_of(looseness));
    };
    add(evaluation.bound.outputs[k].tau);
    for (const Tier& tier : evaluation.bound.tiers)
      if (!tier.outputs[k].tau.empty()) add(tier.outputs[k].tau);
    report.outputs.push_back(std::move(out));
  }
  return report;
}

}  // namespace assay
