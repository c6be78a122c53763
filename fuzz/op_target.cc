// Cases in, verdicts out, features for the fuzzer on the way; a failure aborts or is kept.
#include "fuzz/op_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cases/materialize.h"
#include "cases/random.h"
#include "fuzz/draw.h"
#include "fuzz/generate.h"
#include "fuzz/input_case.h"
#include "fuzz/pipeline.h"
#include "fuzz/signal.h"
#include "fuzz/suites.h"
#include "fuzz/tally.h"
#include "oracle/error.h"
#include "plugin/runner.h"
#include "reports/view.h"

namespace assay {
namespace {

constexpr std::size_t kRepeatOneIn = 4;  // so many cases run twice, with other bytes in unused storage
constexpr std::size_t kFreshOneIn = 8;   // so many inputs come from nowhere

struct Subject {
  KernelIdentity identity;
  Runner* runner = nullptr;
};

bool is_failure(CaseVerdict kind) {
  return kind == CaseVerdict::kFinding || kind == CaseVerdict::kUnclassified || kind == CaseVerdict::kCrashed ||
         kind == CaseVerdict::kHung || kind == CaseVerdict::kUncertain;
}

class OpTarget final : public Target {
 public:
  OpTarget(const std::string& op, const TargetOptions& options)
      : op_(op_named(op)), options_(options), tally_(op_, options.stats) {
    runners_.push_back(in_process_runner());
    for (const std::string& file : options.plugins)
      runners_.push_back(std::make_unique<PluginRunner>(file, WorkerOptions{.command = {own_path(), "worker"}}));
    for (const auto& runner : runners_)
      for (KernelIdentity& identity : runner->kernels()) add_subject(std::move(identity), *runner);
    for (const std::string& name : options.kernels)
      if (std::none_of(subjects_.begin(), subjects_.end(), [&](const Subject& s) { return s.identity.name == name; }))
        throw InputError("--kernel: there is no kernel '" + name + "' of op " + op + " here");
    if (subjects_.empty()) throw EnvironmentError("op " + op + " has no kernel here");
  }

  int run(std::span<const std::uint8_t> input) override {
    if (options_.signal) signal_feature(0);  // else libFuzzer sees nothing in a first input that is refused, and ends
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
    if (!options_.recipes) return {};
    Draw draw(seed);
    const Choose choose = [&](std::size_t n) { return draw(n); };
    const std::optional<Case> start = input_case(op_.name, input, limits_);
    if (!start || choose(kFreshOneIn) == 0) return fresh(choose);
    Case c = *start;
    for (std::size_t changes = 1 + choose(3); changes > 0; --changes)
      if (std::optional<Case> next = mutated(c, last_, choose, limits_)) c = std::move(*next);
    last_ = c;
    return print_case(c);
  }

  std::string cross(std::span<const std::uint8_t> input, std::span<const std::uint8_t> other, std::uint64_t seed) override {
    if (!options_.recipes) return {};
    Draw draw(seed);
    const Choose choose = [&](std::size_t n) { return draw(n); };
    const std::optional<Case> a = input_case(op_.name, input, limits_), b = input_case(op_.name, other, limits_);
    std::optional<Case> child;
    if (options_.crossover && a && b) child = crossed(*a, *b, choose, limits_);
    return child ? print_case(*child) : mutate(input, draw(~std::size_t{0}));
  }

  void finish() override { tally_.write(true); }

 private:
  static std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

  void add_subject(KernelIdentity identity, Runner& runner) {
    if (identity.op != op_.name || (options_.device && !identity.device)) return;
    const bool named = std::find(options_.kernels.begin(), options_.kernels.end(), identity.name) != options_.kernels.end();
    if (options_.kernels.empty() ? !identity.mutant : named) subjects_.push_back({std::move(identity), &runner});
  }

  std::string fresh(const Choose& choose) const {
    constexpr int kTries = 20;
    for (int i = 0; i < kTries; ++i)
      if (const std::optional<Case> c = fresh_case(op_.name, choose, limits_)) return print_case(*c);
    return std::string(op_.name);
  }

  void run_on(const Case& c, const Subject& subject, std::uint64_t hash) {
    std::optional<Regimes> regimes;
    const std::uint64_t salt = tensor_key(1, subject.identity.name);
    Judging judging(Level::kT2);
    judging.evidence = false;
    judging.observe = [&](const Scene& scene) {
      regimes = regimes_of(op_, scene.problem, scene.declared, scene.evaluation, scene.measurement);
      if (options_.signal) signal_run(salt, c, *regimes, scene.measurement);
    };
    const Repeats repeats{.runs = hash / kKernelBits % kRepeatOneIn == 0 ? 2 : 1, .reruns = 0};
    const Record record = run_problem(c, materialize(c), subject.identity.name, *subject.runner, judging, repeats);
    if (options_.signal && !record.verdict.mode.empty()) signal_feature(tensor_key(salt, record.verdict.mode));
    tally_.add(record, regimes);
    tally_.write(false);
    if (is_failure(record.verdict.kind)) fail(record);
  }

  [[noreturn]] void fail(const Record& record) {
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
  const MutationLimits limits_{.elements = 90000, .overrides = 24};
  Tally tally_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Subject> subjects_;
  Case last_;  ///< the last mutant: whose values others take
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
