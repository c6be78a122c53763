// The end of a split or row: sink, LSE, normalisation; and the merge of splits.
#include <algorithm>
#include <cmath>

#include "oracle/exp64.h"
#include "oracle/ops/attention/kernel_replay_state.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;

double log2_of(const Deviation& d, double x) { return d.log2 ? d.log2(x) : log64(x) * kLog2E; }

/// o * keep / sum, and the LSE in natural units.
struct End {
  double keep = 1, sum = 1, lse = 0;
};

End end_row(const Deviation& d, Sink kind, double max, double sum, double sink) {
  End end{.keep = 1, .sum = sum, .lse = 0};
  double lse_max = max, lse_sum = sum;
  if (sink > -kInf || std::isnan(sink)) {
    const bool above = sink > max;
    end.keep = above ? exp64(max - sink) : 1;
    end.sum = sum * end.keep + (above ? 1 : exp64(sink - max));
    if (kind == Sink::kInLse) {
      lse_sum = end.sum;
      if (above) lse_max = sink;
    }
  }
  end.lse = lse_max + log2_of(d, lse_sum) * kLn2;
  return end;
}

}  // namespace

KernelReplay::Part KernelReplay::finish(const Row& row, const Deviation& d, const State& s, double sink,
                                        bool is_part) const {
  Part part{.o = s.o};
  part.empty = !s.any || s.m == -std::numeric_limits<float>::infinity();
  if (part.empty) {
    std::fill(part.o.begin(), part.o.end(), 0.0);
    return part;
  }
  const double offset = exp2_64(a_.p_offset), l = static_cast<double>(s.sum());
  const double max = static_cast<double>(s.m) * (on_score_ ? 1.0 : row.scale * d.scale);
  const End end = end_row(d, params_.sink, max, l / offset, sink);
  const bool normalised = a_.max_policy == MaxPolicy::kOwnTile && a_.normalize == Normalize::kEveryStep;
  double inverse = normalised ? l / offset * end.keep / end.sum
                              : end.keep * (d.reciprocal ? d.reciprocal(end.sum * offset) : 1 / (end.sum * offset));
  inverse = d.reciprocal_store == Format::kFp32 ? inverse : stored(d.reciprocal_store, inverse);
  const double factor = params_.descale == Descale::kBlock ? 1.0 : value_factor(row, d, 0);
  for (double& o : part.o) {
    o *= inverse;
    if (d.cast_before_scale) o = stored(params_.output, o);
    o *= factor * d.gain;
    if (is_part && d.part_o != Format::kFp32) o = stored(d.part_o, o);
  }
  part.lse = is_part ? stored(d.part_lse, end.lse * d.part_lse_factor)
                     : end.lse * (params_.lse == LseBase::kTwo ? kLog2E : 1.0);
  return part;
}

KernelReplay::Part KernelReplay::merge(const Deviation& d, const std::vector<Part>& parts, double sink) const {
  Part all{.o = std::vector<double>(parts[0].o.size(), 0.0)};
  double m = -kInf;
  for (const Part& part : parts) m = std::max(m, part.lse);
  all.empty = m == -kInf;
  if (all.empty) return all;
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const double lse = parts[n].empty && d.empty_counted ? 0.0 : parts[n].lse;
    const double weight = d.equal_parts ? 1.0 : exp64((lse - m) * d.merge_base);
    if (!parts[n].empty) last = n;
    sum += weight;
    for (std::size_t c = 0; c < all.o.size(); ++c) all.o[c] += weight * parts[n].o[c];
  }
  const End end = end_row(d, params_.sink, m, sum, sink);
  for (double& o : all.o) o = o * end.keep / end.sum;
  if (d.last_part) all.o = parts[last].o;
  all.lse = end.lse * (params_.lse == LseBase::kTwo ? kLog2E : 1.0);
  return all;
}

}  // namespace assay
