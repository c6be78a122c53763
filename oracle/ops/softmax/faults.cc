// Known-wrong outputs of softmax, and planted faults of any size, both by the recurrence in fp64.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/accept.h"
#include "oracle/ops/softmax/counterfactual.h"
#include "oracle/ops/softmax/layouts.h"

namespace assay {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

enum Fault : std::size_t { kDroppedKey, kGhostKey, kScaleError, kGain, kLostTile, kStaleSum };

/// The change that is fault number `fault` at `size`, in a row with numbers.
SoftmaxChange change_of(std::size_t fault, double size, const SoftmaxParams& p, const Classified& c,
                        const SoftmaxRow& row) {
  SoftmaxChange change;
  if (fault == kGhostKey) change.ghost = size;
  if (fault == kScaleError) change.scale = 1 + size;
  if (fault == kGain) change.gain = 1 + size;
  if (fault == kStaleSum) change.stale = size;
  if (fault != kDroppedKey && fault != kLostTile) return change;
  const WeightRange range = fault == kDroppedKey ? heaviest_key(p, row, c.finite) : heaviest_tile(p, row, c.finite);
  change.weak_first = range.first;
  change.weak_end = range.end;
  change.weak = 1 - size;
  return change;
}

/// A tile that holds all keys of a row cannot be lost: nothing would remain. One key can neither.
bool touches(std::size_t fault, const SoftmaxParams& p, const Classified& c, const SoftmaxRow& row) {
  if (!c.has_numbers) return false;
  if (fault == kDroppedKey) return c.finite.size() > 1;
  return fault != kLostTile || heaviest_tile(p, row, c.finite).weight < 1;
}

/// One row's values in the order of the outputs.
std::vector<std::vector<double>> in_order(const SoftmaxProblem& problem, const SoftmaxValues& values) {
  std::vector<std::vector<double>> out{values.y};
  if (problem.lse() != nullptr) out.push_back({values.lse});
  if (problem.m() != nullptr) out.push_back(values.m), out.push_back(values.l);
  return out;
}

/// True if some value of a row lies outside its acceptance set. NaN values are not asked about.
class Judge {
 public:
  Judge(const SoftmaxProblem& problem, const Evaluation& evaluation) : problem_(problem), e_(evaluation) {}

  bool rejects(std::size_t row, const SoftmaxValues& values) const {
    const std::vector<std::vector<double>> outputs = in_order(problem_, values);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      for (std::size_t j = 0; j < outputs[k].size(); ++j)
        if (rejects(k, row * outputs[k].size() + j, outputs[k][j])) return true;
    return false;
  }
  bool rejects_y(std::size_t row, const std::vector<double>& y, double gain) const {
    for (std::size_t j = 0; j < y.size(); ++j)
      if (rejects(0, row * y.size() + j, gain * y[j])) return true;
    return false;
  }

 private:
  bool rejects(std::size_t output, std::size_t i, double value) const {
    const OutputTruth& t = e_.truth.outputs[output];
    const OutputBound& b = e_.bound.outputs[output];
    const ClassSet classes = t.classes[i] | b.also[i];
    if (std::isnan(value) || !(classes & (kNumber | kZero))) return false;
    return !accepts(acceptance(t.layout.format, classes, t.mid[i], t.radius[i], b.tau[i]),
                    encode(t.layout.format, value));
  }

  const SoftmaxProblem& problem_;
  const Evaluation& e_;
};

std::vector<double> y_of(const Evaluation& evaluation, std::size_t row, std::size_t n) {
  const auto first = evaluation.truth.outputs[0].mid.begin() + static_cast<std::ptrdiff_t>(row * n);
  return {first, first + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace

std::vector<KnownWrong> softmax_known_wrong(const Problem& raw, const Evaluation& evaluation) {
  constexpr std::size_t kSampleRows = 8;  // each costs a few row evaluations
  const SoftmaxProblem problem(raw);
  const SoftmaxParams& p = problem.params();
  const Judge judge(problem, evaluation);
  std::vector<KnownWrong> all{{"zero"},           {"negated"},     {"rows shuffled"},   {"last key lost"},
                              {"last tile lost"}, {"scale x1.01"}, {"sum not rescaled"}};
  const auto note = [&](std::size_t which, bool rejected) {
    all[which].applicable = true;
    all[which].rejected = all[which].rejected || rejected;
  };
  const auto rows = static_cast<std::size_t>(p.rows), n = static_cast<std::size_t>(p.n);
  const std::size_t stride = std::max<std::size_t>(1, (rows + kSampleRows - 1) / kSampleRows);
  for (std::size_t r = 0; r < rows; r += stride) {
    const SoftmaxRow row = problem.row(static_cast<std::int64_t>(r));
    const Classified c = classify(p, row);
    if (!c.has_numbers) continue;
    const auto wrong = [&](std::size_t which, const SoftmaxChange& change) {
      note(which, judge.rejects(r, softmax_under(p, row, c.finite, change)));
    };
    const std::vector<double> y = y_of(evaluation, r, n);
    note(0, judge.rejects_y(r, y, 0));
    note(1, judge.rejects_y(r, y, -1));
    if (rows > 1) note(2, judge.rejects_y(r, y_of(evaluation, (r + 1) % rows, n), 1));
    const std::int64_t last = row.key[static_cast<std::size_t>(c.finite.back())], tile = last / 64 * 64;
    const std::int64_t first = row.key[static_cast<std::size_t>(c.finite.front())];
    if (first < last) wrong(3, {.weak_first = last, .weak_end = last + 1, .weak = 0});
    if (first < tile) wrong(4, {.weak_first = tile, .weak_end = last + 1, .weak = 0});
    wrong(5, {.scale = 1.01});
    if (first / (p.steps > 0 ? p.steps : 64) < last / (p.steps > 0 ? p.steps : 64)) wrong(6, {.stale = 1});
  }
  return all;
}

std::vector<PlantedFault> softmax_planted_faults() {
  return {{"dropped key", "of the heaviest key's weight", 1},
          {"ghost key", "keys of logit 0", 1e6},
          {"scale error", "relative", 1},
          {"gain", "relative", 1},
          {"lost tile", "of the heaviest tile's weight", 1},
          {"stale sum", "of each rescaling of the running sum", 1}};
}

PlantedOutputs softmax_plant(const Problem& raw, std::size_t fault, double size) {
  const SoftmaxProblem problem(raw);
  const SoftmaxParams& p = problem.params();
  PlantedOutputs out(start_truth(problem).outputs.size());
  bool any = false;
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const SoftmaxRow row = problem.row(i);
    const Classified c = classify(p, row);
    const bool touched = touches(fault, p, c, row);
    any = any || touched;
    const auto steps = static_cast<std::size_t>(p.step_count());
    const SoftmaxValues values =
        touched ? softmax_under(p, row, c.finite, change_of(fault, size, p, c, row))
                : SoftmaxValues{std::vector<double>(static_cast<std::size_t>(p.n), kNone), kNone,
                                std::vector<double>(steps, kNone), std::vector<double>(steps, kNone)};
    const std::vector<std::vector<double>> outputs = in_order(problem, values);
    for (std::size_t k = 0; k < out.size(); ++k) out[k].insert(out[k].end(), outputs[k].begin(), outputs[k].end());
  }
  return any ? out : PlantedOutputs{};
}

FaultSite softmax_fault_site(const Problem& raw, std::size_t fault, std::size_t index) {
  const SoftmaxProblem problem(raw);
  const SoftmaxRow row = problem.row(static_cast<std::int64_t>(index));
  const Classified c = classify(problem.params(), row);
  if (!touches(fault, problem.params(), c, row)) return {};
  if (fault == kDroppedKey) {
    const WeightRange key = heaviest_key(problem.params(), row, c.finite);
    return {fmt::format("key {}", key.first), key.weight};
  }
  if (fault == kLostTile) {
    const WeightRange tile = heaviest_tile(problem.params(), row, c.finite);
    return {fmt::format("keys {} to {}", tile.first, tile.end - 1), tile.weight};
  }
  return {"all keys"};
}

}  // namespace assay
