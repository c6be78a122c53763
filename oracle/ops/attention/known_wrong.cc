// Known-wrong outputs of attention, computed by the oracle, to see which of them a case's acceptance sets reject.
#include <algorithm>
#include <cmath>

#include "oracle/accept.h"
#include "oracle/ops/attention/counterfactual.h"
#include "oracle/ops/attention/layouts.h"

namespace assay {
namespace {

constexpr std::size_t kSampleRows = 8;  // each costs a few row evaluations
constexpr std::int64_t kTile = 64;      // "last tile": the usual key tile

/// Judges values against the acceptance sets of one row. Only elements that must be numbers can reject.
class Judge {
 public:
  explicit Judge(const Evaluation& evaluation) : e_(evaluation) {
    const OutputTruth& o = e_.truth.outputs[0];
    per_row_ = e_.truth.rows.empty() ? 0 : o.element.size() / e_.truth.rows.size();
  }
  bool rejects_o(std::size_t row, const std::vector<double>& o) const {
    for (std::size_t c = 0; c < per_row_; ++c)
      if (rejects(0, row * per_row_ + c, o[c])) return true;
    return false;
  }
  bool rejects_lse(std::size_t row, double lse) const { return e_.truth.outputs.size() > 1 && rejects(1, row, lse); }
  /// The row's true o, times `gain`, given to row `to`.
  bool rejects_moved(std::size_t from, std::size_t to, double gain) const {
    std::vector<double> o(per_row_);
    for (std::size_t c = 0; c < per_row_; ++c) o[c] = gain * e_.truth.outputs[0].mid[from * per_row_ + c];
    return rejects_o(to, o);
  }

 private:
  bool rejects(std::size_t output, std::size_t i, double value) const {
    const OutputTruth& t = e_.truth.outputs[output];
    const OutputBound& b = e_.bound.outputs[output];
    const ClassSet classes = t.classes[i] | b.also[i];
    if (!(classes & (kNumber | kZero))) return false;
    return !accepts(acceptance(t.layout.format, classes, t.mid[i], t.radius[i], b.tau[i]),
                    encode(t.layout.format, value));
  }

  const Evaluation& e_;
  std::size_t per_row_ = 0;
};

bool finite_row(const RowFacts& facts) { return facts.keys > 0 && std::isfinite(facts.lse); }

/// One more known-wrong output for each of the case's options: the kernel never heard of it.
std::vector<std::pair<std::size_t, Hypothesis>> options_left_out(const AttentionParams& p,
                                                                 std::vector<KnownWrong>& all) {
  std::vector<std::pair<std::size_t, Hypothesis>> hypotheses;
  const auto add = [&](bool has, const char* name, const Hypothesis& hypothesis) {
    if (!has) return;
    hypotheses.emplace_back(all.size(), hypothesis);
    all.push_back({name});
  };
  add(p.softcap != 0, "soft cap left out", {.softcap = false});
  add(p.alibi != Alibi::kNone, "ALiBi left out", {.alibi = false});
  add(p.sink != Sink::kNone, "sink left out", {.sink = false});
  add(p.descale != Descale::kNone, "scale factors left out", {.descale = false});
  return hypotheses;
}

}  // namespace

std::vector<KnownWrong> attention_known_wrong(const Problem& raw, const Evaluation& evaluation) {
  const AttentionProblem problem(raw);
  const Judge judge(evaluation);
  Counterfactual counterfactual(problem);
  const AttentionParams& p = problem.params();
  std::vector<KnownWrong> all{{"zero"},          {"negated"},        {"rows shuffled"},
                              {"last key lost"}, {"last tile lost"}, {"mask shifted by one"},
                              {"scale x1.01"}};
  const std::vector<std::pair<std::size_t, Hypothesis>> left_out = options_left_out(p, all);
  const auto note = [&](std::size_t which, bool rejected) {
    all[which].applicable = true;
    all[which].rejected = all[which].rejected || rejected;
  };
  const std::size_t rows = problem.rows().size();
  const std::size_t step = std::max<std::size_t>(1, (rows + kSampleRows - 1) / kSampleRows);
  std::vector<std::int32_t> keys;
  for (std::size_t r = 0; r < rows; r += step) {
    if (!finite_row(evaluation.truth.rows[r])) continue;
    const AttentionRow& row = problem.rows()[r];
    const auto wrong = [&](std::size_t which, const RowOutput& out) {
      note(which, judge.rejects_o(r, out.o) || judge.rejects_lse(r, out.lse));
    };
    note(0, judge.rejects_moved(r, r, 0));
    note(1, judge.rejects_moved(r, r, -1));
    if (rows > 1) note(2, judge.rejects_moved((r + 1) % rows, r, 1));
    problem.admissible_keys(row, keys);
    const auto under = [&](const Hypothesis& hypothesis) { return counterfactual.attend(row, keys, hypothesis); };
    wrong(6, under({.gain = 1.01}));
    for (const auto& [which, hypothesis] : left_out) wrong(which, under(hypothesis));
    const std::vector<std::int32_t> shorter(keys.begin(), keys.end() - 1);
    wrong(3, counterfactual.attend(row, shorter));
    std::vector<std::int32_t> head = keys;
    std::erase_if(head, [&](std::int32_t key) { return key / kTile == keys.back() / kTile; });
    if (!head.empty()) wrong(4, counterfactual.attend(row, head));
    if (const std::int64_t next = keys.back() + 1; p.causal && next < problem.kv_len(row.batch)) {
      keys.push_back(static_cast<std::int32_t>(next));
      wrong(5, counterfactual.attend(row, keys));
    }
  }
  return all;
}

}  // namespace assay
