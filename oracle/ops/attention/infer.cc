// Inference of structure (probes.md 2): which tiles, order, P format and splits predict the bits of the outputs.
//
// Every candidate predicts each sampled output; rounding P shifts an output by far more than all other errors together,
// so the true structure is equal to the outputs nearly everywhere and any other only where its prediction happens to
// round to the same number. The best one stands out if it is right significantly more often than every candidate that
// predicts anything else, on the elements where the two differ: among k such elements each right half the time, a lead
// of 5 sqrt(k) has probability 3e-7.
#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/ops/attention/head_replay.h"
#include "oracle/ops/attention/row_budget.h"
#include "oracle/ops/attention/structure.h"

namespace assay {
namespace {

constexpr double kProducts = 2e8;    ///< multiplications of a weight and a value that a stage may cost
constexpr std::size_t kFewRows = 4;  ///< of the first stage, for all candidates
constexpr std::size_t kManyRows = 48;
constexpr std::size_t kFinalists = 12;
constexpr double kLeast = 0.85;  ///< of all outputs must be equal to the best prediction

/// `count` of n rows, evenly spread.
std::vector<std::size_t> spread(std::size_t n, std::size_t count) {
  std::vector<std::size_t> rows;
  count = std::min(n, count);
  for (std::size_t i = 0; i < count; ++i) rows.push_back((2 * i + 1) * n / (2 * count));
  return rows;
}

struct Sample {
  std::vector<std::uint64_t> actual, truth;
  std::vector<std::vector<std::uint64_t>> predicted;  ///< by candidate
};

/// Depths from scores as the declared block FMA forms them, where it is declared; else the exact ones.
std::vector<double> depths(const AttentionProblem& problem, const RowAnalysis& row, const Arithmetic& declared,
                           HeadReplay& head) {
  const bool block = declared.qk == Accumulate::kBlockAmpere || declared.qk == Accumulate::kBlockHopper;
  if (!block || !row.bias.empty() || problem.params().softcap > 0) return row.depth;
  head.load(problem, row, true);
  std::vector<double> x;
  head.emulate_scores(problem, row, block_model(declared.qk, problem.params().input), x);
  double top = -std::numeric_limits<double>::infinity();
  for (double& s : x) s *= row.factor[0], top = std::max(top, s);
  if (!std::isfinite(top)) return row.depth;
  for (double& s : x) s = top - s;
  return x;
}

Sample predict(const AttentionProblem& problem, const Arithmetic& declared, const std::vector<Arithmetic>& candidates,
               const std::vector<std::size_t>& rows, const TensorView& o) {
  Sample sample;
  sample.predicted.resize(candidates.size());
  HeadReplay head;
  analyse_rows(problem, rows, [&](std::size_t r, const RowAnalysis& row) {
    if (row.uniform || !row.operands->special_v.empty()) return;
    const std::vector<double> depth = depths(problem, row, declared, head);
    std::vector<std::vector<std::uint64_t>> codes;
    for (const Arithmetic& candidate : candidates) {
      codes.push_back(predicted_codes(row, depth, candidate, o.format()));
      if (codes.back().empty()) return;
    }
    for (std::size_t c = 0; c < row.o.size(); ++c) {
      sample.actual.push_back(o.code(problem.o_element(problem.rows()[r], static_cast<std::int64_t>(c))));
      sample.truth.push_back(encode(o.format(), row.o[c]));
      for (std::size_t k = 0; k < candidates.size(); ++k) sample.predicted[k].push_back(codes[k][c]);
    }
  });
  return sample;
}

double share(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  double equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
  return a.empty() ? 0 : equal / static_cast<double>(a.size());
}

/// Whether `best` is right significantly more often than `other` where they differ. True too if they never do.
bool leads(const Sample& sample, const std::vector<std::uint64_t>& best, const std::vector<std::uint64_t>& other) {
  double wins = 0, losses = 0;
  bool same = true;
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (best[i] == other[i]) continue;
    same = false;
    wins += best[i] == sample.actual[i] ? 1 : 0;
    losses += other[i] == sample.actual[i] ? 1 : 0;
  }
  return same || wins - losses > 5 * std::sqrt(wins + losses);
}

bool known(const AttentionParams& params, const Arithmetic& a) {
  return a.p_known &&
         (a.p_format == Format::kFp32 || (a.tile_n > 0 && a.splits > 0 && a.tile_order != TileOrder::kUnknown &&
                                          a.max_policy != MaxPolicy::kUnknown)) &&
         params.input != Format::kFp32;
}

}  // namespace

std::optional<Inference> attention_infer(const Problem& raw, const Arithmetic& declared,
                                         const std::vector<Tensor>& outputs) {
  const AttentionProblem problem(raw);
  const AttentionParams& params = problem.params();
  const auto o = std::find_if(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.layout.role == "o"; });
  if (o == outputs.end() || params.input == Format::kFp32 || params.output == Format::kFp32 || known(params, declared))
    return std::nullopt;
  if (params.data_mask == DataMask::kList || params.descale == Descale::kBlock || problem.rows().empty())
    return std::nullopt;
  std::int64_t longest = 1;
  for (std::int64_t b = 0; b < params.batch; ++b) longest = std::max(longest, problem.kv_len(b));

  std::vector<Arithmetic> candidates = candidate_structures(params, declared, longest);
  const double per_row = static_cast<double>(longest * params.dim_v);
  const auto affordable = [&](std::size_t rows) {
    return std::min(
        rows, static_cast<std::size_t>(std::max(1.0, kProducts / (per_row * static_cast<double>(candidates.size())))));
  };
  const TensorView view = o->view();
  Sample sample = predict(problem, declared, candidates, spread(problem.rows().size(), affordable(kFewRows)), view);
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::vector<double> shares;
  for (const auto& predicted : sample.predicted) shares.push_back(share(predicted, sample.actual));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::vector<Arithmetic> finalists;
  for (std::size_t k = 0; k < std::min(kFinalists, order.size()); ++k) finalists.push_back(candidates[order[k]]);
  candidates = finalists;

  sample = predict(problem, declared, candidates, spread(problem.rows().size(), affordable(kManyRows)), view);
  if (sample.actual.empty()) return std::nullopt;
  Inference result;
  std::size_t best = 0;
  shares.clear();
  for (const auto& predicted : sample.predicted) shares.push_back(share(predicted, sample.actual));
  for (std::size_t k = 1; k < candidates.size(); ++k)
    if (shares[k] > shares[best]) best = k;
  result.bit_equal = shares[best];
  result.rounded_truth = share(sample.truth, sample.actual);
  bool distinct = false;
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    if (sample.predicted[k] == sample.predicted[best]) continue;
    distinct = true;
    if (!leads(sample, sample.predicted[best], sample.predicted[k])) return std::nullopt;
    result.runner_up = std::max(result.runner_up, shares[k]);
  }
  if (!distinct || result.bit_equal < kLeast || !leads(sample, sample.predicted[best], sample.truth))
    return std::nullopt;
  result.arithmetic = candidates[best];
  result.structure = structure_in_words(candidates[best], longest);
  return result;
}

}  // namespace assay
