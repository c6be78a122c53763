// Work is cut by sound kernel and case: inputs, truth and bound are made once for all mutants of a kernel.
#include "fuzz/kill_matrix.h"

#include <algorithm>
#include <cmath>

#include "cases/materialize.h"
#include "failure_catalog/judges/judge.h"
#include "fuzz/metamorphic.h"
#include "fuzz/pipeline.h"
#include "fuzz/repeat.h"
#include "fuzz/suites.h"
#include "oracle/error.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

constexpr int kSecondLooks = 6;  ///< cases on which a mutant is run again for warnings, and for relations

/// One case for one sound kernel and all its mutants.
struct Item {
  std::string base;
  Case c;
  std::string suite;             ///< empty: customary inputs
  const Judge* judge = nullptr;  ///< whose customary inputs
};

/// A judge that has an opinion on a case, of the sound kernel's outputs and of a mutant's.
struct Vote {
  const Judge* judge = nullptr;
  bool passes_sound = true, passes = true;
};

/// What one mutant did on one item.
struct Cell {
  bool ran = false, changed = false;
  std::optional<KillLevel> level = std::nullopt;
  double error = 0;
  std::vector<Vote> votes = {};
};

class Matrix {
 public:
  Matrix(const std::vector<KernelIdentity>& mutants, const KillOptions& options, const OpenRunner& open)
      : options_(options), open_(open) {
    for (const KernelIdentity& mutant : mutants) results_.emplace_back().mutant = mutant;
    list_items();
  }

  KillMatrix run() {
    cells_.assign(items_.size(), {});
    std::size_t left_out = in_parallel(items_.size(), options_.jobs, open_, options_.deadline,
                                       [&](std::size_t i, Runner& runner) { run_item(i, runner); });
    for (std::size_t i = 0; i < items_.size(); ++i) count(i);
    left_out += in_parallel(results_.size(), options_.jobs, open_, options_.deadline,
                            [&](std::size_t m, Runner& runner) { look_again(m, runner); });
    return {std::move(results_), left_out};
  }

 private:
  std::vector<std::size_t> mutants_of(const std::string& base) const {
    std::vector<std::size_t> all;
    for (std::size_t m = 0; m < results_.size(); ++m)
      if (results_[m].mutant.base == base) all.push_back(m);
    return all;
  }

  std::vector<const Judge*> judges_at_home() const {
    std::vector<const Judge*> judges = all_judges();
    const std::vector<std::string>& asked = options_.customary;
    std::erase_if(judges, [&](const Judge* judge) {
      return !asked.empty() && std::find(asked.begin(), asked.end(), judge->name) == asked.end();
    });
    return judges;
  }

  void list_items() {
    std::vector<std::string> bases;
    for (const MutantResult& result : results_)
      if (std::find(bases.begin(), bases.end(), result.mutant.base) == bases.end()) bases.push_back(result.mutant.base);
    for (const std::string& base : bases) {
      const KernelIdentity& like = results_[mutants_of(base).front()].mutant;  // takes what its base takes
      for (const std::string& suite : options_.suites)
        for (Case& c : suite_sample(suite, like, options_.cases))
          items_.push_back({base, std::move(c), suite, nullptr});
      if (like.op != "attention") continue;
      for (const Judge* judge : judges_at_home())
        for (const std::string& dtype : like.dtypes)
          for (Case& c : customary_cases(*judge, *format_from_name(dtype), options_.seed))
            items_.push_back({base, std::move(c), "", judge});
    }
  }

  void run_item(std::size_t i, Runner& runner) {
    const Item& item = items_[i];
    const Problem problem = materialize(item.c);
    const RunOutcome sound = runner.run(item.base, problem.params, problem.inputs, problem.outputs);
    if (sound.status == RunStatus::kSkipped) return;
    const Evaluation evaluation = op_named(item.c.op).evaluate(problem, sound.declared, Level::kT2);
    JudgeMemo memo;
    const auto opinion = [&](const Judge& judge, const std::vector<Tensor>& outputs) {
      return judge.judge({item.c, problem, evaluation.truth, outputs, &memo});
    };
    std::vector<Vote> votes;
    for (const Judge* judge : all_judges())
      if (item.judge == nullptr || judge == item.judge)
        if (const std::optional<Opinion> of_sound = opinion(*judge, sound.outputs))
          votes.push_back({judge, of_sound->passes, of_sound->passes});
    for (const std::size_t m : mutants_of(item.base)) {
      const RunOutcome run = runner.run(results_[m].mutant.name, problem.params, problem.inputs, problem.outputs);
      Cell cell{.ran = run.status != RunStatus::kSkipped, .votes = votes};
      const bool ok = run.status == RunStatus::kOk;
      cell.changed = !ok || bit_difference(sound.outputs, run.outputs).has_value();
      if (cell.changed) {
        cell.level = kill_level(evaluation, run);
        for (Vote& vote : cell.votes)
          vote.passes = ok && opinion(*vote.judge, run.outputs)->passes;  // no test survives a crash
      }
      if (item.suite.empty()) cell.error = ok ? largest_error(evaluation.truth, run.outputs) : INFINITY;
      cells_[i].emplace_back(m, std::move(cell));
    }
  }

  void count(std::size_t i) {
    const Item& item = items_[i];
    for (auto& [m, cell] : cells_[i]) {
      MutantResult& result = results_[m];
      if (!cell.ran) continue;
      if (item.suite.empty()) {
        result.largest_error = std::max(result.largest_error, cell.error);
        Votes& ours = result.ours_on_own[std::string(item.judge->name)];
        ++ours.cases;
        ours.killed += cell.level.has_value();
        for (const Vote& vote : cell.votes) add(result.on_own[std::string(vote.judge->name)], vote);
        continue;
      }
      ++result.cases;
      result.changed += cell.changed;
      if (cell.level) note(result, item.suite == "probe" ? KillLevel::kProbe : *cell.level, print_case(item.c));
      for (const Vote& vote : cell.votes) add(result.on_suites[std::string(vote.judge->name)], vote);
    }
  }

  static void add(Votes& votes, const Vote& vote) {
    ++votes.cases;
    votes.killed += vote.passes_sound && !vote.passes;
    votes.alarms += !vote.passes_sound;
  }
  static void note(MutantResult& result, KillLevel level, const std::string& line) {
    const auto at = static_cast<std::size_t>(level);
    if (result.killed[at]++ == 0) result.first[at] = line;
  }

  /// What more than one run shows: other bits in repeats, warnings where no level saw anything, relations between runs.
  void look_again(std::size_t m, Runner& runner) {
    MutantResult& result = results_[m];
    const std::string& name = result.mutant.name;
    int relations_left = kSecondLooks, warnings_left = kSecondLooks;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const auto found =
          std::find_if(cells_[i].begin(), cells_[i].end(), [&](const auto& entry) { return entry.first == m; });
      if (found == cells_[i].end() || !found->second.ran) continue;
      const Cell& cell = found->second;
      const bool quiet = !cell.level || *cell.level == KillLevel::kT2;
      const bool warn = quiet && cell.changed && warnings_left > 0,
                 repeat = !result.weakest() && !items_[i].suite.empty();  // a survivor is run twice on every case
      const bool relate = relations_left > 0 && relatable(items_[i]);
      if (!warn && !repeat && !relate) continue;
      const Problem problem = materialize(items_[i].c);
      const std::string line = print_case(items_[i].c);
      RepeatedRun run =
          run_repeatedly(runner, name, problem, repeat ? refilled(items_[i].c) : Problem{}, repeat ? 2 : 1);
      if (repeat && !run.difference.empty()) note(result, KillLevel::kHarness, line);
      if (run.outcome.status != RunStatus::kOk) continue;
      if (warn && --warnings_left >= 0) {
        ++result.looked_at;
        result.warned += !judge_outputs(items_[i].c, problem, run.outcome.declared, run.outcome).warnings.empty();
      }
      if (!relate || --relations_left < 0) continue;
      for (const Relation& relation : relations())
        if (!violation(relation, items_[i].c, problem, name, run.outcome, runner).empty()) {
          note(result, KillLevel::kMetamorphic, line);
          break;
        }
    }
  }

  /// Cases with several sequences, or several heads, say most.
  static bool relatable(const Item& item) {
    if (item.suite.empty() || item.c.op != "attention") return false;
    const AttentionParams p = attention_params(item.c.params);
    return p.sampled_rows == 0 && (p.batch > 1 || p.heads_q > 1);
  }

  const KillOptions& options_;
  const OpenRunner& open_;
  std::vector<MutantResult> results_;
  std::vector<Item> items_;
  std::vector<std::vector<std::pair<std::size_t, Cell>>> cells_;  ///< [item]: mutant and what it did
};

}  // namespace

std::optional<KillLevel> MutantResult::weakest() const {
  for (std::size_t at = 0; at < kKillLevelCount; ++at)
    if (killed[at] > 0) return static_cast<KillLevel>(at);
  return std::nullopt;
}

std::vector<Case> suite_sample(const std::string& suite, const KernelIdentity& kernel, std::size_t count) {
  const std::vector<SuiteInfo> all = all_suites();
  if (std::none_of(all.begin(), all.end(), [&](const SuiteInfo& info) { return info.name == suite; })) return {};
  std::vector<Case> taken;
  for (Case& c : suite_cases(suite))
    if (takes(kernel, c)) taken.push_back(std::move(c));
  if (taken.size() <= count || suite == "witness") return taken;  // each of those is there for a fault of its own
  std::vector<Case> sample;
  for (std::size_t n = 0; n < count; ++n) sample.push_back(std::move(taken[n * taken.size() / count]));
  return sample;
}

KillMatrix kill_matrix(const std::vector<KernelIdentity>& mutants, const KillOptions& options, const OpenRunner& open) {
  return Matrix(mutants, options, open).run();
}

}  // namespace assay
