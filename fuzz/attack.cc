// Hill climbing on error over bound, for every kernel, level and output at once: each run is offered to all peaks of
// its kernel.
#include "fuzz/attack.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "cases/materialize.h"
#include "cases/random.h"
#include "fuzz/mutate.h"
#include "fuzz/suites.h"
#include "kernels/runner.h"
#include "oracle/error.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kElite = 6;        // cases kept per peak
constexpr std::size_t kFreshOneIn = 12;  // so often a run starts from a suite instead of from an elite case
constexpr int kTries = 40;               // mutations until one is legal and the kernel takes it
constexpr auto kProgressEvery = std::chrono::seconds(5);

struct Elite {
  double used = 0;
  Case c;
};

using Key = std::tuple<std::string, Level, std::string>;

struct Climb {
  AttackPeak peak;
  std::vector<Elite> elites;  ///< best first
};

/// One kernel's starting cases and climbs.
struct Subject {
  const Kernel* kernel = nullptr;
  std::vector<Case> starts;
  std::map<Key, Climb> climbs;
};

bool takes_case(const Kernel& kernel, const Case& c) {
  const Format format = op_named(c.op).input_format(c.params);
  const bool dtype =
      kernel.formats.empty() || std::find(kernel.formats.begin(), kernel.formats.end(), format) != kernel.formats.end();
  return dtype && !kernel.unsupported(c.params);
}

class Search {
 public:
  explicit Search(const AttackOptions& options)
      : options_(options), op_(op_named(options.op)), runner_(in_process_runner()) {
    for (const std::string& name : options.kernels)
      if (const Kernel* kernel = find_kernel(name); kernel == nullptr || kernel->op != options.op)
        throw InputError("kernel " + name + ": there is none of that name for op " + options.op);
    std::vector<Case> pool = options.starts;
    for (const std::string& suite : options.suites)
      for (Case& c : suite_cases(suite)) pool.push_back(std::move(c));
    std::erase_if(pool, [&](const Case& c) { return c.op != options.op; });
    for (const Kernel* kernel : all_kernels()) {
      const bool named =
          std::find(options.kernels.begin(), options.kernels.end(), kernel->name) != options.kernels.end();
      if (kernel->op != options.op || (options.kernels.empty() ? kernel->mutant : !named)) continue;
      Subject subject{.kernel = kernel, .starts = {}, .climbs = {}};
      for (const Case& c : pool) add_start(subject, c);
      if (subject.starts.empty())
        result_.not_reached.emplace_back(kernel->name);
      else
        subjects_.push_back(std::move(subject));
    }
  }

  AttackResult run(const std::function<void(const AttackResult&)>& progress) {
    const Clock::time_point start = Clock::now();
    Clock::time_point shown = start;
    // Best cases of earlier runs first, so that nothing known is lost.
    for (Subject& subject : subjects_)
      for (std::size_t i = 0; i < std::min(subject.starts.size(), options_.starts.size()); ++i)
        try_case(subject, subject.starts[i]);
    for (std::size_t turn = 0; !subjects_.empty(); ++turn) {
      result_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (options_.evaluations > 0 ? result_.evaluations >= options_.evaluations : result_.seconds >= options_.seconds)
        break;
      Subject& subject = subjects_[turn % subjects_.size()];
      if (const std::optional<Case> c = next_case(subject)) try_case(subject, *c);
      if (Clock::now() - shown < kProgressEvery) continue;
      shown = Clock::now();
      progress(collected());
    }
    AttackResult result = collected();
    for (AttackPeak& peak : result.peaks) add_terms(peak);
    return result;
  }

 private:
  std::size_t choose(std::size_t n) {
    return static_cast<std::size_t>(below(stream_.bits(drawn_++), static_cast<std::int64_t>(n)));
  }

  /// The case, in a dtype of the kernel if the op has one to choose; and with an fp32 output, whose rounding hides
  /// nothing.
  void add_start(Subject& subject, Case c) {
    if (!subject.kernel->formats.empty() && !takes_case(*subject.kernel, c))
      c.params.set("dtype", std::string(info(subject.kernel->formats[0]).name));
    for (const char* key : {"rows", "rows_seed"}) c.params.erase(key);
    Case wide = c;
    wide.params.set("out", "fp32");
    for (Case* one : {&c, &wide})
      if (const std::optional<Case> legal = legal_case(std::move(*one), limits_);
          legal && takes_case(*subject.kernel, *legal))
        subject.starts.push_back(*legal);
  }

  std::optional<Case> next_case(Subject& subject) {
    if (subject.climbs.empty() || choose(kFreshOneIn) == 0) return subject.starts[choose(subject.starts.size())];
    auto climb = subject.climbs.begin();
    std::advance(climb, static_cast<std::ptrdiff_t>(choose(subject.climbs.size())));
    const Case& parent = climb->second.elites[choose(climb->second.elites.size())].c;
    for (int i = 0; i < kTries; ++i) {
      std::optional<Case> next = parent;
      for (std::size_t changes = 1 + choose(3); changes > 0 && next; --changes) {
        const Case& other = subject.starts[choose(subject.starts.size())];
        next = mutated(
            *next, other, [this](std::size_t n) { return choose(n); }, limits_);
      }
      if (next && takes_case(*subject.kernel, *next)) return next;
    }
    return std::nullopt;
  }

  void try_case(Subject& subject, const Case& c) {
    const Problem problem = materialize(c);
    Evaluation evaluation;
    try {
      evaluation = op_.evaluate(problem, subject.kernel->declared(c.params), options_.level);
    } catch (const InputError&) {
      return;  // values that are no legal indices
    }
    const RunOutcome run = runner_->run(subject.kernel->name, problem.params, problem.inputs, problem.outputs);
    if (run.status != RunStatus::kOk) return;
    const Measurement m = measure(evaluation, run.outputs);
    ++result_.evaluations;
    bool rejected = false;
    for (const OutputMeasure& output : m.outputs) {
      rejected = rejected || output.rejected > 0;
      offer(subject, Level::kT0, output.role, output.worst, c);
      for (const TierMeasure& tier : output.tiers) {
        rejected = rejected || tier.rejected > 0;
        offer(subject, tier.level, output.role, tier.worst, c);
      }
    }
    result_.rejected_cases += rejected;
  }

  void offer(Subject& subject, Level level, const std::string& output, const ElementReport& element, const Case& c) {
    if (element.element < 0) return;
    const std::string name(subject.kernel->name);
    Climb& climb = subject.climbs[{name, level, output}];
    if (climb.peak.curve.empty() || element.used > climb.peak.element.used) {
      climb.peak.kernel = name, climb.peak.level = level, climb.peak.output = output;
      climb.peak.case_line = print_case(c);
      climb.peak.element = element;
      climb.peak.curve.push_back({result_.evaluations, element.used});
    }
    std::vector<Elite>& elites = climb.elites;
    if (elites.size() >= kElite && element.used <= elites.back().used) return;
    const auto at = std::find_if(elites.begin(), elites.end(), [&](const Elite& e) { return e.used < element.used; });
    elites.insert(at, {element.used, c});
    if (elites.size() > kElite) elites.pop_back();
  }

  AttackResult collected() const {
    AttackResult result = result_;
    for (const Subject& subject : subjects_)
      for (const auto& [key, climb] : subject.climbs) result.peaks.push_back(climb.peak);
    return result;
  }

  void add_terms(AttackPeak& peak) const {
    if (peak.level != Level::kT0 || op_.bound_terms == nullptr || peak.element.at < 0) return;
    const Case c = parse_case(peak.case_line);
    const Problem problem = materialize(c);
    std::size_t output = 0;
    while (problem.outputs[output].role != peak.output) ++output;
    for (const BoundTerm& term : op_.bound_terms(problem, find_kernel(peak.kernel)->declared(c.params)))
      if (const auto at = static_cast<std::size_t>(peak.element.at); at < term.outputs[output].size())
        peak.terms.emplace_back(term.name, term.outputs[output][at] / peak.element.tau);
  }

  const AttackOptions& options_;
  const Op& op_;
  const std::unique_ptr<Runner> runner_;
  const MutationLimits limits_;
  std::vector<Subject> subjects_;
  AttackResult result_;
  Stream stream_{mix64(options_.seed)};
  std::int64_t drawn_ = 0;
};

}  // namespace

AttackResult attack(const AttackOptions& options, const std::function<void(const AttackResult&)>& progress) {
  return Search(options).run(progress);
}

}  // namespace assay
