// Merges in fp64 with the deviation's roundings.
#include "oracle/ops/merge/row_replay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;

double stored(Format format, double x) { return format == Format::kFp32 ? x : round_to(format, x); }

}  // namespace

RowOutput MergeReplay::row(const MergeRow& row, const MergeDeviation& d) const {
  const auto dv = static_cast<std::size_t>(problem_.params().dim_v);
  const std::size_t parts = row.part.size();
  const double log_base = problem_.log_base() * d.base;
  const auto exponential = [&](double x) { return d.exp2 ? d.exp2(x * kLog2E) : exp64(x); };
  std::vector<double> lse(parts);
  for (std::size_t s = 0; s < parts; ++s) lse[s] = stored(d.part_lse, row.lse[s]);
  const auto o = [&](std::size_t s, std::size_t c) { return stored(d.part_o, row.o[s * dv + c]); };
  RowOutput out{std::vector<double>(dv, 0.0)};
  double state = lse[0], sum = 0;
  if (pairwise_) {
    for (std::size_t c = 0; c < dv; ++c) out.o[c] = o(0, c);
    for (std::size_t s = 1; s < parts; ++s) {
      const double m = std::max(state, lse[s]);
      double a = exponential((state - m) * log_base), b = exponential((lse[s] - m) * log_base);
      const double total = a + b;
      if (d.swapped) std::swap(a, b);
      if (d.equal) a = b = total / 2;
      if (d.last_only) a = 0, b = total;
      for (std::size_t c = 0; c < dv; ++c) out.o[c] = stored(d.state, a / total * out.o[c] + b / total * o(s, c));
      state = m + log64(total) / log_base;
    }
  } else {
    const double m = *std::max_element(lse.begin(), lse.end());
    std::vector<double> weight(parts);
    for (std::size_t s = 0; s < parts; ++s) sum += weight[s] = d.equal ? 1 : exponential((lse[s] - m) * log_base);
    for (std::size_t s = 0; s < parts; ++s) {
      const double share = d.last_only ? (s + 1 == parts ? 1.0 : 0.0) : weight[d.swapped ? parts - 1 - s : s] / sum;
      for (std::size_t c = 0; c < dv; ++c) out.o[c] = stored(d.state, out.o[c] + share * o(s, c));
    }
    state = m + log64(sum) / log_base;
  }
  for (double& value : out.o) value *= d.gain;
  out.lse = state * d.lse_factor;
  return out;
}

std::optional<RowOutput> MergeReplay::predict(std::size_t index, const MergeDeviation& d, const Truth& truth) const {
  const MergeRow read = problem_.row(static_cast<std::int64_t>(index));
  if (!read.has_numbers || read.part.empty()) return std::nullopt;
  const RowOutput nominal = row(read, {});
  RowOutput out = row(read, d);
  if (out.o == nominal.o && out.lse == nominal.lse) return std::nullopt;
  for (std::size_t c = 0; c < out.o.size(); ++c)
    out.o[c] += truth.outputs[0].mid[index * out.o.size() + c] - nominal.o[c];
  if (problem_.lse() != nullptr) out.lse += truth.outputs[1].mid[index] - nominal.lse;
  return out;
}

}  // namespace assay
