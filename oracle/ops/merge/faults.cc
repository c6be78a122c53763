// Known-wrong outputs of a merge, and planted faults of any size, in plain fp64.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "oracle/accept.h"
#include "oracle/exp64.h"
#include "oracle/ops/merge/layouts.h"
#include "oracle/ops/merge/problem.h"

namespace assay {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

enum Fault : std::size_t { kLostPart, kGhostPart, kScaleError, kGain };

/// What a wrong kernel does differently; the default is nothing.
struct Change {
  double scale = 1;                  ///< factor of every LSE
  double gain = 1;                   ///< factor of o
  double ghost = 0;                  ///< that many more parts of LSE 0 and o 0
  std::size_t weak_part = SIZE_MAX;  ///< index of a part whose weight is
  double weak = 1;                   ///< times this
};

struct Values {
  std::vector<double> o;  ///< [dv]
  double lse = kNone;     ///< in the base
};

Values merge_under(const MergeProblem& problem, const MergeRow& row, const Change& change) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const double log_base = problem.log_base() * change.scale;
  const auto [least, largest] = std::minmax_element(row.lse.begin(), row.lse.end());
  const double top = log_base < 0 ? *least * log_base : *largest * log_base;
  Values out{std::vector<double>(dv, 0.0), kNone};
  double sum = change.ghost * exp64(-top);
  for (std::size_t s = 0; s < row.part.size(); ++s) {
    const double weight = exp64(row.lse[s] * log_base - top) * (s == change.weak_part ? change.weak : 1.0);
    sum += weight;
    for (std::size_t c = 0; c < dv; ++c) out.o[c] += weight * row.o[s * dv + c];
  }
  for (double& o : out.o) o *= change.gain / sum;
  out.lse = (top + log64(sum)) / problem.log_base();
  return out;
}

/// Index of the part with the largest weight, and its share.
std::pair<std::size_t, double> heaviest(const MergeProblem& problem, const MergeRow& row) {
  const auto top = static_cast<std::size_t>(std::max_element(row.lse.begin(), row.lse.end()) - row.lse.begin());
  double sum = 0;
  for (double lse : row.lse) sum += exp64((lse - row.lse[top]) * problem.log_base());
  return {top, 1 / sum};
}

bool touches(const MergeRow& row, std::size_t fault) {
  return row.has_numbers && (fault != kLostPart || row.part.size() > 1);
}

class Judge {
 public:
  explicit Judge(const Evaluation& evaluation) : e_(evaluation) {}

  bool rejects(std::size_t row, const Values& values) const {
    for (std::size_t c = 0; c < values.o.size(); ++c)
      if (rejects(0, row * values.o.size() + c, values.o[c])) return true;
    return e_.truth.outputs.size() > 1 && rejects(1, row, values.lse);
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

  const Evaluation& e_;
};

Values truth_of(const Evaluation& evaluation, std::size_t row, std::size_t dv, double gain) {
  Values out;
  for (std::size_t c = 0; c < dv; ++c) out.o.push_back(gain * evaluation.truth.outputs[0].mid[row * dv + c]);
  return out;
}

}  // namespace

std::vector<KnownWrong> merge_known_wrong(const Problem& raw, const Evaluation& evaluation) {
  constexpr std::size_t kSampleRows = 8;  // each costs a few row evaluations
  const MergeProblem problem(raw);
  const Judge judge(evaluation);
  std::vector<KnownWrong> all{{"zero"},        {"negated"},       {"rows shuffled"}, {"last part lost"},
                              {"scale x1.01"}, {"equal weights"}, {"other base"}};
  const auto rows = static_cast<std::size_t>(problem.params().rows),
             dv = static_cast<std::size_t>(problem.params().dim_v);
  const std::size_t stride = std::max<std::size_t>(1, (rows + kSampleRows - 1) / kSampleRows);
  for (std::size_t r = 0; r < rows; r += stride) {
    const MergeRow row = problem.row(static_cast<std::int64_t>(r));
    if (!row.has_numbers) continue;
    const auto wrong = [&](std::size_t which, const Values& values) {
      all[which].applicable = true;
      all[which].rejected = all[which].rejected || judge.rejects(r, values);
    };
    wrong(0, truth_of(evaluation, r, dv, 0));
    wrong(1, truth_of(evaluation, r, dv, -1));
    if (rows > 1) wrong(2, truth_of(evaluation, (r + 1) % rows, dv, 1));
    if (row.part.size() < 2) continue;
    wrong(3, merge_under(problem, row, {.weak_part = row.part.size() - 1, .weak = 0}));
    wrong(4, merge_under(problem, row, {.scale = 1.01}));
    wrong(5, {merge_under(problem, row, {.scale = 0}).o, kNone});
    const double other = problem.params().base == LseBase::kTwo ? 1 / problem.log_base() : 0x1.62e42fefa39efp-1;
    wrong(6, merge_under(problem, row, {.scale = other}));
  }
  return all;
}

std::vector<PlantedFault> merge_planted_faults() {
  return {{"lost part", "of the heaviest part's weight", 1},
          {"ghost part", "parts of LSE 0 and o 0", 1e6},
          {"scale error", "relative, of every LSE", 1},
          {"gain", "relative", 1}};
}

PlantedOutputs merge_plant(const Problem& raw, std::size_t fault, double size) {
  const MergeProblem problem(raw);
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  PlantedOutputs out(problem.lse() != nullptr ? 2 : 1);
  bool any = false;
  for (std::int64_t i = 0; i < problem.params().rows; ++i) {
    const MergeRow row = problem.row(i);
    Values values{std::vector<double>(dv, kNone), kNone};
    if (touches(row, fault)) {
      any = true;
      Change change;
      if (fault == kLostPart) change.weak_part = heaviest(problem, row).first, change.weak = 1 - size;
      if (fault == kGhostPart) change.ghost = size;
      if (fault == kScaleError) change.scale = 1 + size;
      if (fault == kGain) change.gain = 1 + size;
      values = merge_under(problem, row, change);
    }
    for (std::size_t c = 0; c < dv; ++c) out[0].push_back((row.o_classes[c] & kNumber) ? values.o[c] : kNone);
    if (out.size() > 1) out[1].push_back(values.lse);
  }
  return any ? out : PlantedOutputs{};
}

FaultSite merge_fault_site(const Problem& raw, std::size_t fault, std::size_t index) {
  const MergeProblem problem(raw);
  const MergeRow row = problem.row(static_cast<std::int64_t>(index));
  if (!touches(row, fault)) return {};
  if (fault != kLostPart) return {"all parts"};
  const auto [part, weight] = heaviest(problem, row);
  return {fmt::format("part {}", row.part[part]), weight};
}

}  // namespace assay
