// Cases in, verdicts out, features for the fuzzer on the way; a failure aborts or is kept.
#include "fuzz/targets/op_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "cases/materialize.h"
#include "cases/random.h"
#include "fuzz/case_mutator.h"
#include "fuzz/finding_store.h"
#include "fuzz/input_case.h"
#include "fuzz/minimize.h"
#include "fuzz/pipeline.h"
#include "fuzz/signal.h"
#include "fuzz/suites.h"
#include "fuzz/tally.h"
#include "oracle/error.h"
#include "plugin/runner.h"
#include "reports/view.h"

namespace assay {
namespace {

constexpr int kShrinkRuns = 300;         // of a new finding
constexpr std::size_t kRepeatOneIn = 4;  // so many cases run twice, with other bytes in unused storage

struct Subject {
  KernelIdentity identity;
  Runner* runner = nullptr;
};

class OpTarget final : public Target {
 public:
  OpTarget(const std::string& op, const TargetOptions& options)
      : op_(op_named(op)), options_(options), tally_(op_, options.stats) {
    regime_axes(op_);  // makes their tables, which must last until the program's end has written its statistics
    if (!options.findings.empty()) findings_.emplace(options.findings);
    runners_.push_back(in_process_runner());
    for (const std::string& file : options.plugins)
      runners_.push_back(std::make_unique<PluginRunner>(file, WorkerOptions{.command = {own_path(), "worker"}}));
    for (const auto& runner : runners_)
      for (KernelIdentity& identity : runner->kernels()) add_subject(std::move(identity), *runner);
    for (const std::string& name : options.kernels)
      if (std::none_of(subjects_.begin(), subjects_.end(), [&](const Subject& s) { return s.identity.name == name; }))
        throw InputError("--kernel: there is no kernel '" + name + "' of op " + op + " here");
    if (subjects_.empty()) throw EnvironmentError("op " + op + " has no kernel here");
    mutator_.emplace(op_.name, limits_, formats());
  }

  int run(std::span<const std::uint8_t> input) override {
    const std::optional<Case> c = input_case(op_.name, input, limits_);
    if (!c) return tally_.reject(), 0;
    const std::uint64_t hash = tensor_key(0, print_case(*c));
    std::vector<const Subject*> takers;
    for (const Subject& subject : subjects_)
      if (takes(subject.identity, *c)) takers.push_back(&subject);
    if (takers.empty()) return tally_.reject(), 0;
    try {
      run_on(*c, *takers[hash % takers.size()], hash);
    } catch (const InputError&) {
      tally_.reject();  // values that are no legal indices
    }
    return 0;
  }

  std::string mutate(std::span<const std::uint8_t> input, std::uint64_t seed) override {
    return options_.recipes ? mutator_->mutate(input, seed) : std::string();
  }

  void finish() override {
    if (findings_) findings_->flush();
    tally_.write(true);
  }

 private:
  static std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

  /// All that some kernel takes; empty if one takes any.
  std::vector<std::string> formats() const {
    std::set<std::string> all;
    for (const Subject& subject : subjects_) {
      if (subject.identity.dtypes.empty()) return {};
      all.insert(subject.identity.dtypes.begin(), subject.identity.dtypes.end());
    }
    return {all.begin(), all.end()};
  }

  void add_subject(KernelIdentity identity, Runner& runner) {
    if (identity.op != op_.name || (options_.device && !identity.device)) return;
    const bool named = std::find(options_.kernels.begin(), options_.kernels.end(), identity.name) != options_.kernels.end();
    if (options_.kernels.empty() ? !identity.mutant : named) subjects_.push_back({std::move(identity), &runner});
  }

  void run_on(const Case& c, const Subject& subject, std::uint64_t hash) {
    std::optional<Regimes> regimes;
    const std::uint64_t salt = tensor_key(1, subject.identity.name);
    Judging judging(Level::kT2);
    judging.evidence = false;
    judging.observe = [&](const Scene& scene) {
      regimes = regimes_of(op_, scene.problem, scene.declared, scene.evaluation, scene.measurement);
      if (!options_.signal) return;
      signal_case(salt, c, *regimes);
      signal_use(salt, scene.measurement);
    };
    const Repeats repeats{.runs = hash / kKernelBits % kRepeatOneIn == 0 ? 2 : 1, .reruns = 0};
    const Record record = run_problem(c, materialize(c), subject.identity.name, *subject.runner, judging, repeats);
    if (options_.signal && !record.verdict.mode.empty()) signal_feature(tensor_key(salt, record.verdict.mode));
    tally_.add(record, regimes);
    tally_.write(false);
    const CaseVerdict kind = record.verdict.kind;
    if (kind == CaseVerdict::kUncertain && !findings_) stop_at(record);  // the oracle's own failure
    // A kernel that failed in this process may have spoiled its device: no other runs here.
    if (kind == CaseVerdict::kCrashed && subject.runner == runners_.front().get()) stop_at(record);
    if (!is_failure(record)) return;
    if (!findings_) stop_at(record);
    const MinimizeOptions smaller{.runs = kShrinkRuns, .level = judging.level, .repeats = repeats};
    findings_->add(record, shrinker(subject.identity.name, *subject.runner, smaller));
    if (!options_.stop) return;
    findings_->flush();
    tally_.write(true);
    std::exit(1);
  }

  [[noreturn]] void stop_at(const Record& record) {
    tally_.write(true);
    const Verdict& v = record.verdict;
    fmt::print(stderr, "{}: {} {} {}{}\n  {}\n  found after {} executions\n", record.kernel, verdict_name(v.kind), v.mode,
               v.evidence, v.reason,
               record.repro.empty() ? fmt::format("assay repro {} --level t2 --kernel {}", shell_quoted(record.case_line),
                                                  record.kernel)
                                    : record.repro,
               tally_.executions());
    std::abort();
  }

  static constexpr std::uint64_t kKernelBits = 1 << 16;  // above the bits that choose the kernel
  const Op& op_;
  const TargetOptions options_;
  const MutationLimits limits_{.elements = 90000, .overrides = 24, .dictionary = true};
  Tally tally_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Subject> subjects_;
  std::optional<FindingStore> findings_;
  std::optional<CaseMutator> mutator_;
};

}  // namespace

std::unique_ptr<Target> open_op_target(const std::string& op, const TargetOptions& options) {
  return std::make_unique<OpTarget>(op, options);
}

std::string regime_list(const std::string& op) {
  std::string list;
  const std::vector<RegimeAxis> axes = regime_axes(op_named(op));
  for (const RegimeAxis& axis : axes)
    for (const std::string_view level : axis.levels) list += fmt::format("{}: {}\n", axis.name, level);
  return list;
}

}  // namespace assay
