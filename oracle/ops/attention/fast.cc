// Attention in fp64 with a computed radius: the same truth as reference.cc, fast enough to fuzz with. Strips of rows on threads, the
// bound of each row beside its truth, and the rows that fp64 cannot decide in ball arithmetic.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "oracle/ops/attention/analysis.h"
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/regimes.h"
#include "oracle/ops/attention/shared_head.h"
#include "oracle/ops/attention/strip.h"
#include "oracle/threads.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Ball arithmetic decides the row when fp64's radius is unknown, or not small beside the bound (numerics.md 2.14).
bool must_escalate(const RowTruth& truth, const RowBound& bound, bool has_lse) {
  const auto decided = [](double radius, double tau) { return radius < kInf && radius <= 0x1p-10 * tau; };
  for (std::size_t c = 0; c < truth.o_mid.size(); ++c)
    if ((truth.o_classes[c] & kNumber) && !decided(truth.o_radius[c], bound.o_tau[c])) return true;
  return has_lse && (truth.lse_classes & kNumber) && !decided(truth.lse_radius, bound.lse_tau);
}

/// Rule for V = +-inf (numerics.md 2.14): NaN too where the key's P may have become 0 in its format or by rescaling.
void allow_lost_infinity(const AttentionProblem& problem, const RowAnalysis& a, double depth, std::vector<ClassSet>& also) {
  std::vector<double> v(also.size());
  for (std::int32_t key : a.operands->special_v) {
    const auto at = std::lower_bound(a.keys.begin(), a.keys.end(), key);
    if (at == a.keys.end() || *at != key || a.depth[static_cast<std::size_t>(at - a.keys.begin())] < depth) continue;
    problem.load_v(a.operands->batch, a.operands->kv_head, key, v);
    const double factor = problem.value_factor(a.row, key);
    for (std::size_t c = 0; c < v.size(); ++c)
      if (!std::isfinite(factor * v[c])) also[c] |= kNan;
  }
}

/// Everything that a row adds to an Evaluation.
struct RowOutcome {
  RowTruth truth;
  RowBound bound;
  std::vector<ClassSet> also;
  std::vector<RowTier> tiers;  ///< parallel to the levels that apply
};

void append(Bound& bound, const RowOutcome& row, bool has_lse) {
  const bool lost = !row.bound.out_of_range.empty();
  OutputBound& o = bound.outputs[0];
  for (std::size_t c = 0; c < row.bound.o_tau.size(); ++c) {
    o.tau.push_back(lost ? kInf : row.bound.o_tau[c]);
    o.also.push_back(lost ? kAnything : row.also[c]);
  }
  if (has_lse) {
    bound.outputs[1].tau.push_back(lost ? kInf : row.bound.lse_tau);
    bound.outputs[1].also.push_back(lost ? kAnything : ClassSet{0});
  }
  bound.out_of_range.push_back(row.bound.out_of_range);
  for (std::size_t level = 0; level < bound.tiers.size(); ++level) {
    std::vector<OutputTier>& outputs = bound.tiers[level].outputs;
    const RowTier& tier = row.tiers[level];
    outputs[0].mid.insert(outputs[0].mid.end(), tier.mid.begin(), tier.mid.end());
    outputs[0].tau.insert(outputs[0].tau.end(), tier.tau.begin(), tier.tau.end());
    if (!has_lse) continue;
    outputs[1].mid.push_back(tier.lse_mid);
    outputs[1].tau.push_back(tier.lse_tau);
  }
}

/// Rows of one head that are evaluated together.
struct Task {
  std::size_t head = 0;  ///< index into the heads of the problem
  std::size_t first = 0, count = 0;
};

/// Cuts rows, which come in (b, h, i) order, into strips of one kv head; strips of one query head where it has enough rows, so
/// that causal masks leave them few keys.
std::vector<Task> cut_into_strips(const AttentionProblem& problem, std::span<const AttentionRow> rows, std::vector<AttentionRow>& heads) {
  std::vector<Task> tasks;
  const auto same_kv = [&](const AttentionRow& a, const AttentionRow& b) {
    return a.batch == b.batch && problem.kv_head(a.head) == problem.kv_head(b.head);
  };
  for (std::size_t first = 0; first < rows.size();) {
    const std::size_t most = Strip::rows_at_once(problem.kv_len(rows[first].batch));
    std::size_t end = first, group_end = first;
    while (end < rows.size() && rows[end].batch == rows[first].batch && rows[end].head == rows[first].head) ++end;
    for (group_end = end; group_end < rows.size() && same_kv(rows[first], rows[group_end]);) ++group_end;
    if (end - first < most) end = std::min(group_end, first + most);
    if (heads.empty() || !same_kv(heads.back(), rows[first])) heads.push_back(rows[first]);
    const std::size_t strips = (end - first + most - 1) / most, sixes = (end - first + 5) / 6;
    for (std::size_t s = 0; s < strips; ++s) {
      const std::size_t from = sixes * s / strips * 6, to = std::min(sixes * (s + 1) / strips * 6, end - first);
      tasks.push_back({heads.size() - 1, first + from, to - from});
    }
    first = end;
  }
  return tasks;
}

class Evaluator {
 public:
  Evaluator(const AttentionProblem& problem, const Arithmetic& arithmetic, Level level) : problem_(problem), arithmetic_(arithmetic) {
    for (const Level tier : {Level::kT1, Level::kT2})
      if (tier <= level && tier_applies(problem.params(), arithmetic, tier)) levels_.push_back(tier);
  }

  Evaluation evaluate();

 private:
  RowOutcome judge(RowTruth& truth, RowAnalysis* a, Strip& strip, TierReplay& replay) const;

  const AttentionProblem& problem_;
  const Arithmetic& arithmetic_;
  std::vector<Level> levels_;
};

RowOutcome Evaluator::judge(RowTruth& truth, RowAnalysis* a, Strip& strip, TierReplay& replay) const {
  constexpr int kEscalationBits = 128;
  const bool has_lse = problem_.lse_layout() != nullptr;
  const auto dv = static_cast<std::size_t>(problem_.params().dim_v);
  RowOutcome out;
  out.also.assign(dv, 0);
  out.bound.o_tau.assign(dv, 0.0);
  out.tiers.assign(levels_.size(), {std::vector<double>(dv, 0.0), std::vector<double>(dv, kInf)});
  if (a != nullptr) {
    if (!a->operands->special_v.empty()) strip.describe(*a);
    out.bound = bound_row(*a, problem_.params(), arithmetic_);
    if (out.bound.needs_keys) {
      strip.describe(*a);
      out.bound = bound_row(*a, problem_.params(), arithmetic_);
    }
    allow_lost_infinity(problem_, *a, out.bound.infinite_v_depth, out.also);
    if (out.bound.out_of_range.empty() && must_escalate(truth, out.bound, has_lse)) {
      strip.describe(*a);
      sharpen_radius(problem_, *a);
      take_radius(problem_.params(), *a, truth);
      if (must_escalate(truth, out.bound, has_lse)) {
        truth = reference_row(problem_, a->row, kEscalationBits);
        truth.facts.escalated = true;
      }
    }
    if (out.bound.out_of_range.empty() && !levels_.empty() && !a->uniform && !truth.facts.escalated) {
      strip.describe(*a);
      make_magnitudes_exact(problem_, *a);
      for (std::size_t i = 0; i < levels_.size(); ++i) out.tiers[i] = replay.tier(*a, out.bound, levels_[i]);
    }
  } else if (has_lse && (truth.lse_classes & kNumber)) {
    const AttentionRow row{truth.facts.batch, truth.facts.head, truth.facts.query};
    out.bound.lse_tau = lone_sink_tau(problem_.sink(row), problem_.params(), arithmetic_);
  }
  out.truth = std::move(truth);
  return out;
}

Evaluation Evaluator::evaluate() {
  const bool has_lse = problem_.lse_layout() != nullptr;
  Evaluation evaluation{.truth = start_truth(problem_), .bound = {}};
  Bound& bound = evaluation.bound;
  bound.outputs.resize(evaluation.truth.outputs.size());
  bound.assumptions = bound_assumptions(arithmetic_);
  for (const Level level : levels_) {
    bound.tiers.push_back({level, std::vector<OutputTier>(evaluation.truth.outputs.size())});
    for (std::string& sentence : tier_assumptions(arithmetic_, level)) bound.assumptions.push_back(std::move(sentence));
  }

  const std::vector<AttentionRow>& rows = problem_.rows();
  std::vector<AttentionRow> first_rows;
  const std::vector<Task> tasks = cut_into_strips(problem_, rows, first_rows);
  std::vector<SharedHead> heads(first_rows.size());
  for (const Task& task : tasks) ++heads[task.head].users;
  std::vector<std::vector<RowOutcome>> done(tasks.size());
  std::size_t appended = 0;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  on_threads(tasks.size(), [&] {
    Strip strip(problem_);
    TierReplay replay(problem_, arithmetic_);
    for (std::size_t t; (t = next++) < tasks.size();) {
      const Task& task = tasks[t];
      SharedHead& head = heads[task.head];
      std::vector<RowOutcome> outcomes;
      outcomes.reserve(task.count);
      strip.evaluate(head.load(problem_, first_rows[task.head]), std::span(rows).subspan(task.first, task.count),
                     [&](std::size_t, RowTruth& truth, RowAnalysis* a) { outcomes.push_back(judge(truth, a, strip, replay)); });
      head.release();
      const std::lock_guard lock(mutex);
      done[t] = std::move(outcomes);
      for (; appended < tasks.size() && done[appended].size() == tasks[appended].count; ++appended) {
        for (std::size_t i = 0; i < done[appended].size(); ++i) {
          const RowOutcome& row = done[appended][i];
          append(evaluation.truth, problem_, rows[tasks[appended].first + i], row.truth);
          append(bound, row, has_lse);
        }
        done[appended] = {};
      }
    }
  });
  return evaluation;
}

Evaluation evaluate_attention(const Problem& raw, const Arithmetic& arithmetic, Level level) {
  const AttentionProblem problem(raw);
  return Evaluator(problem, arithmetic, level).evaluate();
}

const RegisterOp kRegister({
    .name = "attention",
    .summary = "softmax(scale q k^T + mask) v with log-sum-exp, forward",
    .params = kAttentionParams,
    .canonical = canonical_attention,
    .inputs = attention_inputs,
    .outputs = attention_outputs,
    .input_format = attention_input_format,
    .cells = attention_cells,
    .evaluate = evaluate_attention,
    .reference = attention_reference,
    .known_wrong = attention_known_wrong,
    .digits = attention_digits,
    .bound_terms = attention_bound_terms,
    .planted_faults = attention_planted_faults,
    .plant = attention_plant,
    .fault_site = attention_fault_site,
    .planter = attention_planter,
    .infer = attention_infer,
    .regime_axes = attention_regime_axes,
    .regimes = attention_regimes,
});

}  // namespace

void analyse_rows(const AttentionProblem& problem, std::span<const std::size_t> rows,
                  const std::function<void(std::size_t, const RowAnalysis&)>& visit) {
  std::vector<AttentionRow> chosen, first_rows;
  for (const std::size_t r : rows) chosen.push_back(problem.rows()[r]);
  Strip strip(problem);
  HeadOperands head;
  for (const Task& task : cut_into_strips(problem, chosen, first_rows)) {
    const AttentionRow& of_head = first_rows[task.head];
    load_head(problem, of_head.batch, problem.kv_head(of_head.head), head);
    strip.evaluate(head, std::span(chosen).subspan(task.first, task.count), [&](std::size_t i, RowTruth&, RowAnalysis* a) {
      if (a == nullptr) return;
      strip.describe(*a);
      visit(rows[task.first + i], *a);
    });
  }
}

}  // namespace assay
