// Reads a kernel's weights with identity blocks for V, and holds them against the oracle's.
#include "failure_catalog/tomography.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/walk.h"
#include "oracle/exp64.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {
namespace {

constexpr double kLargestMatrix = 0x1p26;

/// The problem with other values: `channel(row)` names the channel that is 1 in the vector at `row`, -1: none.
Problem with_values(const Problem& problem, const std::function<std::int64_t(const Row&)>& channel) {
  Problem out = problem;
  for (const InputSpec& spec : op_named("attention").inputs(problem.params)) {
    if (spec.layout.role != "v" && spec.layout.role != "v_prefix") continue;
    const auto tensor = std::find_if(out.inputs.begin(), out.inputs.end(),
                                     [&](const Tensor& t) { return t.layout.role == spec.layout.role; });
    const std::uint64_t one = encode(spec.layout.format, 1), zero = encode(spec.layout.format, 0);
    for_each_row(spec, [&](const Row& row, const RowValues& at) {
      if (!is_used(row)) return;
      const std::int64_t on = channel(row);
      at.each([&](std::int64_t i, std::int64_t element, std::int64_t) {
        store_code(tensor->bytes.data(), spec.layout.format, element, i == on ? one : zero);
      });
    });
  }
  return out;
}

/// The smallest weight, relative to the row's largest, that no rounding or flushing of P takes to zero. In 8 bits P may
/// have no offset; in 16 it may lose its subnormal numbers.
double least_visible(Format input) {
  switch (input) {
    case Format::kE4m3:
    case Format::kE5m2: return 2 * info(input).min_normal;
    case Format::kFp16: return 2 * info(input).min_normal;
    default: return 0x1p-100;
  }
}

void add_key(std::vector<KeyRun>& runs, std::int64_t key) {
  if (!runs.empty() && runs.back().last == key - 1)
    runs.back().last = key;
  else
    runs.push_back({key, key});
}

/// Rows of one problem with what the oracle expects of them.
std::vector<RowWeights> expected_weights(const AttentionProblem& problem) {
  std::vector<RowWeights> rows;
  Counterfactual counterfactual(problem);
  std::vector<std::int32_t> keys;
  const AttentionParams& p = problem.params();
  for (const AttentionRow& row : problem.rows()) {
    const auto n = static_cast<std::size_t>(problem.kv_len(row.batch));
    RowWeights out{.row = row,
                   .position = p.align == Align::kTopLeft
                                   ? row.query
                                   : row.query + problem.kv_len(row.batch) - problem.q_len(row.batch),
                   .expected = std::vector<float>(n, 0.0F),
                   .measured = std::vector<float>(n, 0.0F),
                   .admissible = std::vector<bool>(n, false),
                   .missing = {},
                   .extra = {},
                   .origin = {}};
    problem.admissible_keys(row, keys);
    const std::vector<double> x = counterfactual.logits(row, keys);
    double top = problem.sink(row), sum = 0;
    for (const double logit : x) top = std::max(top, logit);
    for (const double logit : x) sum += logit > -std::numeric_limits<double>::infinity() ? exp64(logit - top) : 0;
    sum += exp64(problem.sink(row) - top);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto j = static_cast<std::size_t>(keys[i]);
      out.admissible[j] = true;
      out.expected[j] = static_cast<float>(exp64(x[i] - top) / sum * problem.value_factor(row, keys[i]));
    }
    rows.push_back(std::move(out));
  }
  return rows;
}

/// What is missing, what is extra, how the rest compares.
void compare(const AttentionParams& p, double rounding, RowWeights& row) {
  double largest = 0, expected = 0, measured = 0;
  for (const float w : row.expected) largest = std::max(largest, std::abs(static_cast<double>(w)));
  const double visible = std::max(least_visible(p.input) * largest, 4 * info(p.output).min_normal);
  std::vector<double> ratios;
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    const double want = static_cast<double>(row.expected[j]), got = static_cast<double>(row.measured[j]);
    const auto key = static_cast<std::int64_t>(j);
    expected += want, measured += got;
    if (!std::isfinite(got)) row.finite = false;
    if (!row.admissible[j] && got != 0) add_key(row.extra, key);
    if (!row.admissible[j] || !(std::abs(want) >= visible)) continue;
    if (got == 0)
      add_key(row.missing, key);
    else
      ratios.push_back(got / want);
  }
  row.total = expected != 0 ? measured / expected : 1;
  if (ratios.empty() || !row.finite) return;
  std::vector<double> sorted = ratios;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  row.factor = sorted[sorted.size() / 2];
  for (const double ratio : ratios) {
    const double off = std::abs(ratio / row.factor - 1);
    row.spread = std::max(row.spread, off);
    row.unequal += off > rounding ? 1 : 0;
  }
}

}  // namespace

std::optional<std::string> no_tomography(const Problem& problem, std::string_view op) {
  if (op != "attention") return "tomography reads attention weights; " + std::string(op) + " has none";
  const AttentionParams p = attention_params(problem.params);
  if (p.v_in_k) return "V is part of K (v_from=k): it cannot be replaced by identity blocks";
  const AttentionProblem reader(problem);
  const double matrix = static_cast<double>(reader.rows().size()) * static_cast<double>(p.len_kv);
  if (matrix > kLargestMatrix)
    return "the weight matrix has " + std::to_string(static_cast<std::int64_t>(matrix)) +
           " elements, at most 2^26 are read; rows=N samples rows";
  return std::nullopt;
}

std::optional<Tomography> weight_tomography(const Problem& problem, const KernelRun& run) {
  const AttentionProblem reader(problem);
  const AttentionParams& p = reader.params();
  Tomography out{.rows = expected_weights(reader)};
  const auto read = [&](const std::vector<Tensor>& outputs, const RowWeights& row, std::int64_t channel) {
    return static_cast<float>(outputs[0].view().value(reader.o_element(row.row, channel)));
  };
  for (std::int64_t first = 0; first < p.len_kv; first += p.dim_v) {
    const auto outputs = run(with_values(problem, [&](const Row& row) {
      return row.position >= first && row.position < first + p.dim_v ? row.position - first : -1;
    }));
    ++out.runs;
    if (!outputs) return std::nullopt;
    for (RowWeights& row : out.rows) {
      const auto end = std::min(static_cast<std::int64_t>(row.measured.size()), first + p.dim_v);
      for (std::int64_t key = first; key < end; ++key)
        row.measured[static_cast<std::size_t>(key)] = read(*outputs, row, key - first);
    }
  }
  const bool own = !p.expand_batch && !p.expand_heads && p.prefix == 0 && p.batch * p.heads_kv > 1;
  if (own && p.batch * p.heads_kv <= p.dim_v) {
    const auto outputs = run(with_values(problem, [&](const Row& row) { return row.batch * p.heads_kv + row.head; }));
    ++out.runs;
    if (!outputs) return std::nullopt;
    for (RowWeights& row : out.rows)
      for (std::int64_t from = 0; from < p.batch * p.heads_kv; ++from) row.origin.push_back(read(*outputs, row, from));
  }
  // P and o are rounded, P perhaps truncated, and in 8 bits the scores of the cubic or of 13-bit sums are off besides.
  out.rounding = 4 * (info(p.input).unit_roundoff + info(p.output).unit_roundoff) + 1e-3;
  for (RowWeights& row : out.rows) compare(p, out.rounding, row);
  return out;
}

}  // namespace assay
