// Root finding for detection floors: per element the displacement over the room to its set's edge, verified by the real
// test.
#include "oracle/floor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/measure.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kClose = 1.01;         // rejected over accepted size at which a floor is found
constexpr double kAside = 1.003;        // how far from a predicted root it is tested, on either side
constexpr double kFirstSize = 0x1p-10;  // of the largest size: displacements are nearly proportional to it there
constexpr double kTrusted = 0x1p-6;     // plant(0) may miss the truth by this part of the room
constexpr int kSecantSteps = 20;        // then bisection
constexpr int kMostSteps = 120;

/// Distances from the centre to where rounding leaves the set; +inf: no edge on that side.
struct Room {
  double below = 0, above = 0;
};

Room room_of(const Acceptance& set, double centre) {
  const auto edge = [&](double bound, bool upward) {
    if (std::isinf(bound)) return bound;
    const std::uint64_t code = encode(set.format, bound);
    const std::uint64_t next = upward ? next_up(set.format, code) : next_down(set.format, code);
    return decode(set.format, code) / 2 + decode(set.format, next) / 2;
  };
  return {centre - edge(set.low, false), edge(set.high, true) - centre};
}

bool is_accepted(const Acceptance& set, double value) { return accepts(set, encode(set.format, value)); }

/// What one size of a fault does to one output at one level.
struct Reading {
  double used = 0;          ///< the largest displacement over room
  bool rejected = false;    ///< some element leaves its set,
  std::int64_t at = -1;     ///< this one by most
  bool applicable = false;  ///< the fault has a value for some element
};

class Target {
 public:
  Target(const JudgedOutput& judged, const OutputTruth& truth, const std::vector<double>& unplanted) : judged_(judged) {
    for (std::size_t i = 0; i < judged.sets.size(); ++i) {
      if (!(std::isfinite(judged.centre[i]) && std::isfinite(unplanted[i]))) continue;
      const Room room = room_of(judged.sets[i], judged.centre[i]);
      const double least = std::min(room.below, room.above);
      if (!(least > 0) || !is_accepted(judged.sets[i], judged.centre[i])) continue;  // excludes even a perfect kernel
      if (std::abs(unplanted[i] - truth.mid[i]) <= kTrusted * least) elements_.push_back({i, unplanted[i], room});
    }
  }

  Reading read(const std::vector<double>& planted) const {
    constexpr double kNearEdge = 0.99;
    Reading r;
    double farthest = -1;
    for (const Element& e : elements_) {
      const double moved = planted[e.index] - e.unplanted;
      if (std::isnan(moved)) continue;
      r.applicable = true;
      const double used = moved > 0 ? moved / e.room.above : -moved / e.room.below;
      if (std::isnan(used)) continue;  // infinite over infinite
      r.used = std::max(r.used, used);
      if (used < kNearEdge || used <= farthest) continue;
      if (is_accepted(judged_.sets[e.index], judged_.centre[e.index] + moved)) continue;
      farthest = used;
      r.rejected = true;
      r.at = static_cast<std::int64_t>(e.index);
    }
    return r;
  }

 private:
  struct Element {
    std::size_t index;
    double unplanted;
    Room room;
  };
  const JudgedOutput& judged_;
  std::vector<Element> elements_;
};

/// The bracket of one target's root: everything is accepted at `accepted_`, something is rejected at `rejected_`.
class Root {
 public:
  explicit Root(double largest) : largest_(largest) {}

  void update(double size, const Reading& reading) {
    ++steps_;
    applicable_ = applicable_ || reading.applicable;
    if (reading.rejected && size < rejected_) {
      rejected_ = size, rejected_used_ = reading.used, at_ = reading.at;
      if (accepted_ >= rejected_) accepted_ = accepted_used_ = 0;  // not monotone: the smaller root counts
      came_from_below_ = false;
    } else if (!reading.rejected && size > accepted_ && size < rejected_) {
      accepted_ = size, accepted_used_ = reading.used;
      came_from_below_ = true;
    }
  }

  /// The next size worth trying; 0: the bracket is as close as it has to be, or there is none.
  double next() const {
    if (steps_ == 0) return largest_ * kFirstSize;
    if (!applicable_ || steps_ >= kMostSteps || accepted_ >= largest_ || rejected_ <= accepted_ * kClose) return 0;
    if (accepted_ == 0) return rejected_ * std::clamp(0.5 / rejected_used_, 0x1p-40, 0.5);
    const double proportional = accepted_used_ > 0 ? accepted_ / accepted_used_ : kInf;
    if (rejected_ == kInf) return std::min(largest_, std::max(accepted_, proportional) * kAside);
    double guess = std::sqrt(accepted_) * std::sqrt(rejected_);
    if (steps_ < kSecantSteps && proportional < rejected_) guess = secant(proportional);
    guess = came_from_below_ ? guess * kAside : guess / kAside;
    return std::clamp(guess, accepted_ * (1 + 0x1p-10), rejected_ / (1 + 0x1p-10));
  }

  Floor floor() const {
    if (!applicable_) return {};
    if (rejected_ == kInf) return {.state = Floor::State::kNotVisible, .size = 0, .accepted = 0, .at = -1, .site = {}};
    return {.state = Floor::State::kVisible, .size = rejected_, .accepted = accepted_, .at = at_, .site = {}};
  }

 private:
  /// Where a power of the size through both readings uses exactly the room.
  double secant(double proportional) const {
    if (!(rejected_used_ < kInf) || !(rejected_used_ > accepted_used_)) return proportional;
    const double part = log64(1 / accepted_used_) / log64(rejected_used_ / accepted_used_);
    return accepted_ * exp64(std::clamp(part, 0.0, 1.0) * log64(rejected_ / accepted_));
  }

  double largest_;
  double accepted_ = 0, accepted_used_ = 0, rejected_ = kInf, rejected_used_ = kInf;
  std::int64_t at_ = -1;
  int steps_ = 0;
  bool applicable_ = false, came_from_below_ = true;
};

}  // namespace

JudgedLevel judged_level(const Evaluation& evaluation, Level level) {
  JudgedLevel judged{.name = std::string(level_name(level)), .outputs = {}};
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    const OutputBound& bound = evaluation.bound.outputs[k];
    JudgedOutput out;
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const ClassSet classes = truth.classes[i] | bound.also[i];
      Acceptance set = acceptance(truth.layout.format, classes, truth.mid[i], truth.radius[i], bound.tau[i]);
      const bool number = (truth.classes[i] & (kNumber | kZero)) != 0 && classes != kAnything;
      double centre = number ? truth.mid[i] : std::numeric_limits<double>::quiet_NaN();
      for (const Tier& tier : evaluation.bound.tiers) {
        const OutputTier& t = tier.outputs[k];
        if (!number || !(classes & kNumber) || tier.level > level || t.tau.empty() || !(t.tau[i] < kInf)) continue;
        const Acceptance narrower = acceptance(truth.layout.format, classes, t.mid[i], 0, t.tau[i]);
        // Rounding is monotone, so the codes between the roundings of these are those that both sets hold.
        set.low = std::max(set.low, narrower.low);
        set.high = std::min(set.high, narrower.high);
        centre = t.mid[i];
      }
      out.sets.push_back(set);
      out.centre.push_back(centre);
    }
    judged.outputs.push_back(std::move(out));
  }
  return judged;
}

FaultFloors detection_floors(const Op& op, FaultPlanter& planter, std::size_t fault, const Truth& truth,
                             std::span<const JudgedLevel> levels) {
  const std::size_t outputs = truth.outputs.size();
  FaultFloors found{.fault = op.planted_faults()[fault],
                    .floors = std::vector<std::vector<Floor>>(levels.size(), std::vector<Floor>(outputs))};
  const PlantedOutputs unplanted = planter.plant(fault, 0);
  if (unplanted.empty()) return found;
  std::vector<Target> targets;
  for (const JudgedLevel& level : levels)
    for (std::size_t k = 0; k < outputs; ++k) targets.emplace_back(level.outputs[k], truth.outputs[k], unplanted[k]);
  std::vector<Root> roots(targets.size(), Root(found.fault.largest));
  const auto try_size = [&](double size) {
    const PlantedOutputs planted = planter.plant(fault, size);
    for (std::size_t t = 0; t < targets.size(); ++t) roots[t].update(size, targets[t].read(planted[t % outputs]));
  };
  for (const Root& root : roots)
    for (double size; (size = root.next()) > 0;) try_size(size);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Floor& floor = found.floors[t / outputs][t % outputs];
    floor = roots[t].floor();
    if (floor.at < 0) continue;
    const std::int32_t row = truth.outputs[t % outputs].row[static_cast<std::size_t>(floor.at)];
    floor.site = planter.site(fault, static_cast<std::size_t>(row));
  }
  return found;
}

std::vector<FaultFloors> detection_floors(const Op& op, const Problem& problem, const Truth& truth,
                                          std::span<const JudgedLevel> levels) {
  std::vector<FaultFloors> all;
  const std::unique_ptr<FaultPlanter> planter = fault_planter(op, problem);
  const std::size_t faults = op.planted_faults().size();
  for (std::size_t f = 0; f < faults; ++f) all.push_back(detection_floors(op, *planter, f, truth, levels));
  return all;
}

}  // namespace assay
