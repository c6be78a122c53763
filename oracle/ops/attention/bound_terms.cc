// The bound of every judged element by source: QK, exp, P, PV, merge, normalise, subnormals, what cheaper majorants add, and half an
// output ulp.
#include <cmath>
#include <limits>

#include "oracle/ops/attention/row_budget.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 10> kNames = {"QK",        "exp",        "P",    "PV",    "merge",
                                                    "normalise", "subnormals", "hull", "majorant", "output"};
constexpr std::size_t kNormalise = 5, kMajorant = 8;

std::array<const std::vector<double>*, 8> parts(const TermShares& s) {
  return {&s.qk, &s.exp, &s.p, &s.pv, &s.merge, &s.normalise, &s.subnormals, &s.hull};
}

/// T0 of rows with like keys comes from sums over them, a little above what the terms give key by key.
void fill_majorant(const Bound& bound, std::vector<BoundTerm>& terms) {
  for (std::size_t k = 0; k < bound.outputs.size(); ++k)
    for (std::size_t i = 0; i < bound.outputs[k].tau.size(); ++i) {
      double sum = 0;
      for (std::size_t t = 0; t < kMajorant; ++t) sum += terms[t].outputs[k][i];
      const double rest = bound.outputs[k].tau[i] - sum;
      if (rest > 0 && std::isfinite(rest)) terms[kMajorant].outputs[k][i] = rest;
    }
}

}  // namespace

std::vector<BoundTerm> attention_bound_terms(const Problem& raw, const Arithmetic& arithmetic) {
  const AttentionProblem problem(raw);
  const bool has_lse = problem.lse_layout() != nullptr;
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const std::size_t count = problem.rows().size();
  std::vector<BoundTerm> terms;
  for (std::string_view name : kNames) {
    BoundTerm& term = terms.emplace_back();
    term.name = name;
    term.outputs.emplace_back(count * dv, 0.0);
    if (has_lse) term.outputs.emplace_back(count, 0.0);
  }
  std::vector<std::size_t> rows(count);
  for (std::size_t r = 0; r < count; ++r) {
    rows[r] = r;
    const double sink = problem.sink(problem.rows()[r]);
    if (!has_lse || problem.params().sink != Sink::kInLse || !std::isfinite(sink)) continue;
    // What remains where a row has no logit but the sink's; the others are overwritten below.
    terms[kNormalise].outputs[1][r] = lone_sink_tau(sink, problem.params(), arithmetic);
    terms.back().outputs[1][r] = ulp(Format::kFp32, problem.params().lse == LseBase::kTwo ? sink * kLog2E : sink) / 2;
  }
  analyse_rows(problem, rows, [&](std::size_t r, const RowAnalysis& row) {
    TermShares shares;
    RowBudget(row, problem.params(), arithmetic).bound(&shares);
    const auto values = parts(shares);
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t c = 0; c < dv; ++c) terms[k].outputs[0][r * dv + c] = (*values[k])[c];
      if (has_lse) terms[k].outputs[1][r] = (*values[k])[dv];
    }
    BoundTerm& output = terms.back();
    for (std::size_t c = 0; c < dv; ++c) output.outputs[0][r * dv + c] = ulp(problem.o_layout().format, row.o[c]) / 2;
    if (has_lse)
      output.outputs[1][r] = ulp(Format::kFp32, problem.params().lse == LseBase::kTwo ? row.lse * kLog2E : row.lse) / 2;
  });
  fill_majorant(op_named("attention").evaluate(raw, arithmetic, Level::kT0).bound, terms);
  return terms;
}

}  // namespace assay
