// Attention under planted faults of any size: the exact fp64 answer of a kernel with that fault and no other error.
//
// With everything over D (plant_row.h) a row is o = N / D and lse = log D + log L (or log D with the sink in it), D = L
// + sink = 1. Every fault but the scale's changes N, L and D by one weighted vector:
//   dropped key, lost tile   minus size sum p_j (f_j v_j, 1, 1) over the row's most visible key or tile of 64
//   ghost key                plus size e^-log D (0, 1, 1)
//   mask shift               plus size e^(x_e - log D) (f_e v_e, 1, 1), e the key just beyond the causal or window edge
//   gain                     o (1 + size), LSE untouched
//   scale error              scale (1 + size)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/plant_row.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

enum Fault : std::size_t { kDroppedKey, kGhostKey, kScaleError, kMaskShift, kGain, kLostTile };

/// log(e^a + e^b)
double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == -kInf ? high : high + log64(1 + exp64(low - high));
}

class AttentionPlanter final : public FaultPlanter {
 public:
  explicit AttentionPlanter(const Problem& raw) : problem_(raw), reader_(problem_), rows_(problem_.rows().size()) {}

  PlantedOutputs plant(std::size_t fault, double size) override;
  FaultSite site(std::size_t fault, std::size_t row) override;

 private:
  struct Values {
    std::vector<double> o;
    double lse = kNone;
  };
  const std::optional<PlantRow>& row(std::size_t r);
  Values values(const PlantRow& row, std::size_t fault, double size) const;
  Values unchanged(const PlantRow& row) const {
    return {row.o, in_base(row.log_denominator + log64(counted(row, row.keys)))};
  }
  Values without(const PlantRow& row, const LostPart& part, double share) const;
  Values with(const PlantRow& row, double x, const std::vector<double>& v, double share) const;
  double counted(const PlantRow& row, double keys) const {
    return problem_.params().sink == Sink::kInLse ? keys + row.sink : keys;
  }
  double in_base(double lse) const { return problem_.params().lse == LseBase::kTwo ? lse / kLn2 : lse; }
  bool touches(const PlantRow& row, std::size_t fault) const { return fault != kMaskShift || row.edge.has_value(); }

  const AttentionProblem problem_;
  PlantRowReader reader_;
  std::vector<std::optional<std::optional<PlantRow>>> rows_;  ///< read when first asked for
};

const std::optional<PlantRow>& AttentionPlanter::row(std::size_t r) {
  if (!rows_[r]) rows_[r] = reader_.read(problem_.rows()[r]);
  return *rows_[r];
}

AttentionPlanter::Values AttentionPlanter::without(const PlantRow& row, const LostPart& part, double share) const {
  const double kept = 1 - share, left = part.rest + kept * part.weight;
  Values out{std::vector<double>(row.o.size(), 0.0), -kInf};
  const double denominator = left + row.sink;
  if (!(denominator > 0)) {  // nothing is left, or weights beyond fp64's range
    if (!(part.whole_row && share >= 1)) return {std::vector<double>(row.o.size(), kNone), kNone};
    return out;
  }
  for (std::size_t c = 0; c < row.o.size(); ++c) {
    const double other = row.o[c] - part.smaller[c];
    out.o[c] = (part.smaller_is_part ? other + kept * part.smaller[c] : part.smaller[c] + kept * other) / denominator;
  }
  if (counted(row, left) > 0) out.lse = in_base(row.log_denominator + log64(counted(row, left)));
  return out;
}

/// `share` more keys of logit x and value v.
AttentionPlanter::Values AttentionPlanter::with(const PlantRow& row, double x, const std::vector<double>& v,
                                                double share) const {
  const double ratio = x - row.log_denominator;  // log of the key's weight over D
  const double shrink = exp64(-std::max(ratio, 0.0)), weight = share * exp64(std::min(ratio, 0.0));
  Values out{row.o, 0};
  for (std::size_t c = 0; c < out.o.size(); ++c)
    out.o[c] = (row.o[c] * shrink + (v.empty() ? 0.0 : weight * v[c])) / (shrink + weight);
  out.lse = in_base(log_add(row.log_denominator + log64(counted(row, row.keys)), x + log64(share)));
  return out;
}

AttentionPlanter::Values AttentionPlanter::values(const PlantRow& row, std::size_t fault, double size) const {
  if (size == 0 && fault != kGain) return unchanged(row);
  switch (fault) {
    case kDroppedKey: return without(row, row.key, size);
    case kLostTile: return without(row, row.tile, size);
    case kGhostKey: return with(row, 0, {}, size);
    case kMaskShift: return row.edge->x == -kInf ? unchanged(row) : with(row, row.edge->x, row.edge->v, size);
    default: break;
  }
  Values out = unchanged(row);
  if (fault == kGain) {
    for (double& o : out.o) o *= 1 + size;
    out.lse = kNone;
  }
  return out;
}

PlantedOutputs AttentionPlanter::plant(std::size_t fault, double size) {
  const bool has_lse = problem_.lse_layout() != nullptr;
  const auto dv = static_cast<std::size_t>(problem_.params().dim_v);
  PlantedOutputs outputs(has_lse ? 2 : 1);
  bool any = false;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Values out{std::vector<double>(dv, kNone), kNone};
    if (fault == kScaleError && size != 0) {
      const std::optional<PlantRow> scaled = reader_.read_scaled(problem_.rows()[r], 1 + size);
      if (scaled) out = unchanged(*scaled);
      any = any || scaled;
    } else if (const std::optional<PlantRow>& plan = row(r); plan && touches(*plan, fault)) {
      out = values(*plan, fault, size);
      any = true;
    }
    outputs[0].insert(outputs[0].end(), out.o.begin(), out.o.end());
    if (has_lse) outputs[1].push_back(out.lse);
  }
  return any ? outputs : PlantedOutputs{};
}

FaultSite AttentionPlanter::site(std::size_t fault, std::size_t r) {
  const std::optional<PlantRow>& plan = row(r);
  if (!plan) return {};
  switch (fault) {
    case kDroppedKey: return {fmt::format("key {}", plan->key.first_key), plan->key.weight};
    case kLostTile: return {fmt::format("keys {} to {}", plan->tile.first_key, plan->tile.last_key), plan->tile.weight};
    case kGhostKey: return {"a key of logit 0", exp64(-plan->log_denominator)};
    case kMaskShift:
      if (plan->edge) return {fmt::format("key {}", plan->edge->key), exp64(plan->edge->x - plan->log_denominator)};
      break;
    default: break;
  }
  return {};
}

}  // namespace

std::vector<PlantedFault> attention_planted_faults() {
  return {{"dropped key", "of the key's weight", 1},
          {"ghost key", "keys of logit 0 and value 0", 0x1p20},
          {"scale error", "relative", 1},
          {"mask shift", "of the weight of one key beyond the edge", 1},
          {"gain", "relative", 1},
          {"lost tile", "of the weight of 64 keys", 1}};
}

std::unique_ptr<FaultPlanter> attention_planter(const Problem& problem) {
  return std::make_unique<AttentionPlanter>(problem);
}

PlantedOutputs attention_plant(const Problem& problem, std::size_t fault, double size) {
  return AttentionPlanter(problem).plant(fault, size);
}

FaultSite attention_fault_site(const Problem& problem, std::size_t fault, std::size_t row) {
  return AttentionPlanter(problem).site(fault, row);
}

}  // namespace assay
