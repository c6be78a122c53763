// Looks at siblings, one after another, and the sum of what they say.
#include "failure_catalog/second_look.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/materialize.h"
#include "failure_catalog/second_scene.h"
#include "failure_catalog/siblings.h"
#include "oracle/error.h"

namespace assay {
namespace {

constexpr int kMostLooks = 4;          // at siblings that fail, once a mode is named
constexpr double kLeastSupport = 0.1;  // of a name, however weak

struct Candidate {
  const Mode* mode = nullptr;
  double support = 0;   ///< over all looks
  double most = 0;      ///< of one look that names it
  Diagnosis diagnosis;  ///< of that look; of confidence 0 where it was a rival only
  std::string where;    ///< the sibling; empty: the first look
};

class Tally {
 public:
  void add(const Look& look, const std::string& where) {
    const double support = std::max(look.support, kLeastSupport);
    Candidate& named = of(look.found->mode);
    named.support += support;
    if (support > named.most) named.most = support, named.diagnosis = look.found->diagnosis, named.where = where;
    for (const std::string& rival : look.found->diagnosis.rivals) of(find_mode(rival)).support += support;
  }

  /// Of those that a look named, the one with the most support; the earlier one of equals. Null without any.
  const Candidate* leader() const {
    const Candidate* best = nullptr;
    for (const Candidate& c : all_)
      if (c.most > 0 && (best == nullptr || c.support > best->support)) best = &c;
    return best;
  }

  /// Whether the leader stands out from all others.
  bool decided() const {
    const Candidate* best = leader();
    return best != nullptr &&
           std::all_of(all_.begin(), all_.end(),
                       [&](const Candidate& c) { return &c == best || best->support - c.support >= Look::kEnough; }) &&
           best->support >= Look::kEnough;
  }

  /// Modes that a look named beside the leader's, and those that no look told from it.
  std::vector<std::string> rivals() const {
    const Candidate* best = leader();
    std::vector<std::string> names;
    for (const Candidate& c : all_)
      if (&c != best && (c.most > 0 || best->support - c.support < Look::kEnough)) names.emplace_back(c.mode->name);
    return names;
  }

 private:
  Candidate& of(const Mode* mode) {
    const auto known = std::find_if(all_.begin(), all_.end(), [&](const Candidate& c) { return c.mode == mode; });
    if (known != all_.end()) return *known;
    return all_.emplace_back(Candidate{mode, 0, 0, {}, {}});
  }

  std::vector<Candidate> all_;
};

std::unique_ptr<SecondScene> scene_of(const Scene& first, const Case& sibling) {
  try {
    return SecondScene::of(first, sibling, materialize(sibling));
  } catch (const InputError&) {  // arguments of a recipe that do not fit the new shape
    return nullptr;
  }
}

}  // namespace

std::optional<Classification> second_look(const Scene& scene, Look first) {
  Tally tally;
  if (first.found) tally.add(first, "");
  int looks = 0;
  for (const Sibling& sibling : siblings(scene.c)) {
    const std::unique_ptr<SecondScene> second = scene_of(scene, sibling.c);
    if (second == nullptr || !second->fails()) continue;
    if (const Look look = look_at(second->scene()); look.found) tally.add(look, sibling.what);
    if ((++looks >= kMostLooks && tally.leader() != nullptr) || tally.decided()) break;
  }
  const Candidate* leader = tally.leader();
  if (leader == nullptr) return std::nullopt;
  Classification result{leader->mode, leader->diagnosis};
  if (!leader->where.empty()) {
    const std::string here = !first.found ? "no hypothesis explains this input alone"
                             : first.found->mode == leader->mode
                                 ? first.found->diagnosis.evidence
                                 : fmt::format("this input alone could be {} too ({})", first.found->mode->name,
                                               first.found->diagnosis.evidence);
    result.diagnosis.evidence =
        fmt::format("{}; on the like of it ({}): {}", here, leader->where, leader->diagnosis.evidence);
  }
  result.diagnosis.rivals = tally.rivals();
  return result;
}

}  // namespace assay
