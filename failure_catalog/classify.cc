// Asks every mode, fits hypotheses, names rivals and runs follow-ups.
#include "failure_catalog/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "failure_catalog/second_look.h"
#include "failure_catalog/second_scene.h"
#include "failure_catalog/tomography.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kExplained = 0.97;  // confidence of a hypothesis that explains every element
constexpr double kLaw = 0.9;         // of a signature that holds for every rejected element
constexpr double kExact = 0.95;      // of one that holds for every judged row
constexpr double kProven = 0.985;    // a signature of this confidence leaves no other explanation

/// A hypothesis that explains the outputs.
struct Explanation {
  const Mode* mode = nullptr;
  FitAt fit;
  Diagnosis diagnosis;
  double cost = 0;
};

std::vector<Explanation> explanations(const Mode& mode, const Scene& scene, std::size_t& asked) {
  std::vector<Explanation> found;
  if (mode.hypotheses == nullptr) return found;
  std::vector<Supposition> list = mode.hypotheses(scene);
  asked += list.size();
  for (Supposition& s : list) {
    const FitAt fit = s.parameter ? scene.trial().fit(s.predict, *s.parameter)
                                  : FitAt{scene.trial().fit([&](std::size_t row) { return s.predict(row, 0); })};
    s.predict = nullptr;  // with what it holds: copies of the problem
    if (!fit.fit.explains()) continue;
    Explanation e{&mode, fit, {}, s.cost};
    e.diagnosis.confidence = kExplained * std::min(1.0, (fit.fit.loud_share() + fit.fit.quiet_share()) / 2 + 0.005);
    e.diagnosis.evidence = s.evidence(fit);
    if (s.parameter && !s.parameter_name.empty())
      e.diagnosis.estimate = Estimate{s.parameter_name, fit.value, fit.standard_error, fit.budget};
    found.push_back(std::move(e));
  }
  return found;
}

/// By residual; where predictions cannot be told apart, by cost, then by the mode's place.
const Explanation* best_of(const std::vector<Explanation>& all, const Trial& trial) {
  const Explanation* best = nullptr;
  for (const Explanation& e : all)
    if (best == nullptr || e.fit.fit.after < best->fit.fit.after) best = &e;
  const Explanation* least = best;
  for (const Explanation& e : all)
    if (!trial.tells_apart(e.fit.fit, least->fit.fit) && e.cost < best->cost) best = &e;
  for (const Explanation& e : all)
    if (!trial.tells_apart(e.fit.fit, least->fit.fit) && e.cost == best->cost && e.mode->id < best->mode->id) best = &e;
  return best;
}

/// Noise is estimated from above, within a factor of two of its square: residuals that differ by less say nothing.
bool fits_as_well(const Fit& other, const Fit& best) { return other.after - best.after < best.expected / 2; }

/// The square of the cosine between an error of n dimensions and a direction that has nothing to do with it passes s
/// with a chance below (1 - s)^((n - 1) / 2), and every one of the hypotheses asked is such a direction. A row counts
/// as one dimension: what is wrong with its sum or its scale is wrong with all its elements.
double support_of(const Fit& fit, const Trial& trial, std::size_t asked) {
  const double left = std::clamp(std::max(1 - fit.removed(), fit.expected / fit.before), 1e-9, 1.0);
  return -log64(left) * (trial.spread() - 1) / 2 - log64(static_cast<double>(std::max<std::size_t>(asked, 1)));
}

/// What a second run on another problem says about a mode and its rival.
struct Outcome {
  const Mode* mode = nullptr;  ///< the one it leaves; null: it says nothing
  std::string what;
};

Outcome run_follow_up(const Scene& scene, const Mode& asks, const Mode& other) {
  if (asks.follow_up == nullptr || scene.experiment == nullptr) return {};
  std::optional<FollowUp> next = asks.follow_up(scene, other.name);
  if (!next) return {};
  Case c = scene.c;
  c.params = next->problem.params;
  const std::unique_ptr<SecondScene> second = SecondScene::of(scene, std::move(c), std::move(next->problem));
  if (second == nullptr) return {};
  if (!second->fails()) {
    if (next->if_clean == FollowUp::Clean::kSaysNothing) return {};
    return {next->if_clean == FollowUp::Clean::kMeansThis ? &asks : &other, next->what};
  }
  const std::optional<Diagnosis> mine = diagnose(asks, second->scene()), theirs = diagnose(other, second->scene());
  if (mine && (!theirs || mine->confidence > theirs->confidence)) return {&asks, next->what};
  if (theirs && (!mine || theirs->confidence > mine->confidence)) return {&other, next->what};
  return {};
}

/// What weight tomography says where rivals are left: a mode of key sets is refuted by right ones, a mode that leaves
/// weights alone by wrong ones. Bent logits can make any weight 0, or masked keys take part.
void ask_for_keys(const Scene& scene, Classification& best, const std::vector<const Explanation*>& rivals) {
  const std::optional<KeyEvidence> keys = key_evidence(scene);
  if (!keys) return;
  const auto refuted = [&](std::string_view id) {
    return (keys->right_keys && (id == "M10" || id == "M12")) || (keys->wrong_keys && id == "M19");
  };
  std::vector<std::string>& named = best.diagnosis.rivals;
  for (const Explanation* rival : rivals)
    if (refuted(rival->mode->id)) std::erase(named, rival->mode->name);
  if (refuted(best.mode->id)) {
    const auto left = std::find_if(rivals.begin(), rivals.end(), [&](const Explanation* rival) {
      return std::find(named.begin(), named.end(), rival->mode->name) != named.end();
    });
    if (left != rivals.end()) {
      std::vector<std::string> others = std::move(named);
      std::erase(others, (*left)->mode->name);
      best = {(*left)->mode, (*left)->diagnosis};
      best.diagnosis.rivals = std::move(others);
    }
  }
  best.diagnosis.evidence += "; " + keys->text;
}

}  // namespace

std::optional<Diagnosis> diagnose(const Mode& mode, const Scene& scene) {
  std::optional<Diagnosis> best;
  if (mode.detect != nullptr) best = mode.detect(scene);
  std::size_t asked = 0;
  const std::vector<Explanation> found = explanations(mode, scene, asked);
  if (const Explanation* e = best_of(found, scene.trial()); e != nullptr)
    if (!best || e->diagnosis.confidence > best->confidence) best = e->diagnosis;
  return best;
}

Look look_at(const Scene& scene) {
  std::optional<Classification> best;
  std::vector<Explanation> all;
  std::vector<const Mode*> laws;  // signatures that hold for every rejected element
  std::size_t asked = 0;
  for (const Mode* mode : all_modes()) {
    if (mode->detect != nullptr)
      if (const std::optional<Diagnosis> d = mode->detect(scene)) {
        if (d->confidence >= kLaw) laws.push_back(mode);
        if (!best || d->confidence > best->diagnosis.confidence) best = {mode, *d};
      }
    for (Explanation& e : explanations(*mode, scene, asked)) all.push_back(std::move(e));
  }
  const Explanation* first = best_of(all, scene.trial());
  if (first == nullptr || (best && best->diagnosis.confidence >= first->diagnosis.confidence)) {
    if (!best) return {};
    const auto doubt = [&](const Mode* mode) {
      std::vector<std::string>& rivals = best->diagnosis.rivals;
      if (mode != best->mode && std::find(rivals.begin(), rivals.end(), mode->name) == rivals.end())
        rivals.emplace_back(mode->name);
    };
    if (best->diagnosis.confidence < kProven) {
      for (const Explanation& e : all) doubt(e.mode);
      for (const Mode* mode : laws) doubt(mode);
    }
    return {best, best->diagnosis.confidence >= kExact ? Look::kEnough : 0};
  }
  const double support = support_of(first->fit.fit, scene.trial(), asked);
  best = {first->mode, first->diagnosis};
  std::vector<const Explanation*> rivals;
  for (const Explanation& e : all) {
    const auto same = [&](const Explanation* r) { return r->mode == e.mode; };
    if (e.mode != first->mode && std::none_of(rivals.begin(), rivals.end(), same) &&
        (fits_as_well(e.fit.fit, first->fit.fit) || !scene.trial().tells_apart(e.fit.fit, first->fit.fit)))
      rivals.push_back(&e);
  }
  for (const Explanation* rival : rivals) {
    Outcome outcome = run_follow_up(scene, *best->mode, *rival->mode);
    if (outcome.mode == nullptr) outcome = run_follow_up(scene, *rival->mode, *best->mode);
    if (outcome.mode == nullptr) {
      best->diagnosis.rivals.emplace_back(rival->mode->name);
      continue;
    }
    const Mode* refuted = outcome.mode == best->mode ? rival->mode : best->mode;
    if (outcome.mode != best->mode) {
      std::vector<std::string> kept = std::move(best->diagnosis.rivals);
      best = {rival->mode, rival->diagnosis};
      best->diagnosis.rivals = std::move(kept);
    }
    best->diagnosis.evidence += fmt::format("; a second run {} rules out {}", outcome.what, refuted->name);
  }
  if (!best->diagnosis.rivals.empty()) ask_for_keys(scene, *best, rivals);
  for (const Mode* law : laws)
    if (law != best->mode && std::none_of(rivals.begin(), rivals.end(), [&](const auto* r) { return r->mode == law; }))
      best->diagnosis.rivals.emplace_back(law->name);
  return {best, support};
}

std::optional<Classification> classify(const Scene& scene) {
  Look first = look_at(scene);
  const bool clear = first.support >= Look::kEnough && first.found->diagnosis.rivals.empty();
  if (scene.experiment == nullptr || clear) return std::move(first.found);
  return second_look(scene, std::move(first));
}

}  // namespace assay
