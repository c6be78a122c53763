// `assay mutants`: planted faults against our levels and the rules of other projects; false alarms; the confusion
// matrix.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/fleet.h"
#include "cli/mutants_report.h"
#include "cli/verbs.h"
#include "failure_catalog/mode.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "reports/environment.h"

namespace assay {
namespace {

struct Options {
  std::vector<std::string> names{"mutants"}, parts{"matrix", "alarms", "confusion"}, suites, plugins, planted;
  std::string save, markdown;
  std::size_t cases = 24, adversarial = 300;
  int failures = 6, tries = 150, deadline = 60;
  std::uint64_t seed = 1;
  double budget = 0;
  unsigned jobs = 0;
  bool list = false, json = false, device = false;
};

std::vector<KernelIdentity> chosen(const Options& options) {
  std::vector<KernelIdentity> mutants =
      choose_kernels(*open_fleet(std::chrono::seconds(options.deadline)), options.names);
  for (const KernelIdentity& kernel : mutants)
    if (!kernel.mutant) throw InputError("mutants " + kernel.name + ": has no planted fault");
  std::erase_if(mutants, [&](const KernelIdentity& kernel) { return kernel.device != options.device; });
  if (mutants.empty())
    throw InputError(options.device ? "mutants: this build has no device mutants"
                                    : "mutants: only device mutants are named; add --device");
  return mutants;
}

/// `--plant KERNEL=MODE`: kernels of plug-ins whose fault has that mode.
std::vector<KernelIdentity> planted_in_plugins(const Options& options) {
  std::vector<KernelIdentity> faulty;
  if (options.planted.empty()) return faulty;
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(options.deadline), options.plugins);
  for (const std::string& text : options.planted) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos) throw InputError("--plant " + text + ": must be KERNEL=MODE");
    faulty.push_back(kernel_named(*fleet, text.substr(0, at)));
    faulty.back().expects = text.substr(at + 1);
    if (find_mode(faulty.back().expects) == nullptr)
      throw InputError("--plant " + text + ": there is no such mode; `assay list modes` shows them");
  }
  return faulty;
}

int list_mutants(const std::vector<KernelIdentity>& mutants, bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const KernelIdentity& m : mutants) {
    rows.push_back({{"mutant", m.name},
                    {"base", m.base},
                    {"fault", m.fault},
                    {"mode", m.expects},
                    {"report", m.report},
                    {"device", m.device},
                    {"summary", m.summary}});
    if (!json)
      fmt::print("{:<44} {:<28} {:<24} {:<20} {}\n", m.name, m.fault, m.expects.empty() ? "-" : m.expects,
                 m.report.empty() ? "-" : m.report, m.summary);
  }
  const MutantCounts n = counts_of(mutants);
  if (json)
    fmt::print("{}\n", rows.dump(1));
  else
    fmt::print("{} mutants: {} faults at {} sites over {} modes, {} after public reports\n", n.mutants, n.faults,
               n.sites, n.modes, n.after_reports);
  return 0;
}

int mutants(const Options& options) {
  const std::vector<KernelIdentity> faulty = chosen(options);
  if (options.list) return list_mutants(faulty, options.json);
  const auto has = [&](std::string_view part) {
    return std::find(options.parts.begin(), options.parts.end(), part) != options.parts.end();
  };
  const unsigned jobs = options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  Deadline deadline;
  if (options.budget > 0)
    deadline.at =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.budget));
  const OpenRunner open = [&] { return open_fleet(std::chrono::seconds(options.deadline), options.plugins); };
  MutantsReport report{.mutants = faulty, .matrix = {}, .alarms = {}, .confusion = {}};
  if (has("matrix")) {
    KillOptions o{.cases = options.cases, .seed = options.seed, .jobs = jobs, .deadline = deadline};
    if (!options.suites.empty()) o.suites = options.suites;
    report.matrix = kill_matrix(faulty, o, open);
  }
  if (has("alarms"))
    report.alarms =
        false_alarms({.cases = options.adversarial, .seed = options.seed, .jobs = jobs, .deadline = deadline}, open);
  if (has("confusion")) {
    std::vector<KernelIdentity> with_modes = faulty;
    for (KernelIdentity& kernel : planted_in_plugins(options)) with_modes.push_back(std::move(kernel));
    report.confusion = confusion(with_modes,
                                 {.failures = options.failures,
                                  .tries = options.tries,
                                  .seed = options.seed,
                                  .jobs = jobs,
                                  .deadline = deadline},
                                 open);
  }
  const nlohmann::json where = environment();
  const nlohmann::ordered_json document = mutants_json(report, where);
  const std::string text = document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!options.save.empty()) write_durably(options.save, text);
  if (!options.markdown.empty()) write_durably(options.markdown, mutants_markdown(report, where));
  fmt::print("{}", options.json ? text : mutants_text(report));
  const bool alarm = report.alarms && report.alarms->rules["assay"].alarms > 0;
  return alarm || (report.matrix && !survivors(*report.matrix).empty()) ? 1 : 0;
}

}  // namespace

void add_mutants(Verb& app, int& exit_code) {
  Verb verb = app.add(
      "mutants", "planted faults against our levels and the rules of other projects; false alarms; confusion matrix");
  const auto o = std::make_shared<Options>();
  verb.option("names", o->names, "mutants (default: all)");
  verb.flag("--list", o->list, "print every mutant with its switch, mode and report, and run nothing");
  verb.flag("--device", o->device, "the mutants of device kernels instead of the host's");
  verb.option("--part", o->parts, "matrix, alarms or confusion (repeatable; default: all three)")
      .one_each()
      .one_of({"matrix", "alarms", "confusion"});
  add_plugin_option(verb, o->plugins);
  verb.option("--plant", o->planted,
              "KERNEL=MODE: a plug-in's kernel with a fault of that mode, for the confusion matrix (repeatable)")
      .one_each();
  verb.option("--suite", o->suites,
              "suite of the matrix (repeatable; default: smoke, witness, probe, edge, adversarial, dense, llm_like)")
      .one_each();
  verb.option("--cases", o->cases, "cases of each suite for each sound kernel (default 24)").range(1, 100000);
  verb.option("--adversarial", o->adversarial, "distinct adversarial cases for false alarms (default 300)")
      .range(1, 1000000);
  verb.option("--failures", o->failures, "failing cases wanted of each mutant for the confusion matrix (default 6)")
      .range(1, 10000);
  verb.option("--tries", o->tries, "runs at most to find them (default 150)").range(1, 1000000);
  verb.option("--seed", o->seed, "of everything drawn");
  verb.option("--budget", o->budget, "start nothing new after this many seconds").non_negative();
  verb.option("--deadline", o->deadline, "seconds after which one run counts as hung").range(1, 86400);
  verb.option("--jobs", o->jobs, "threads, each with its own workers (default: cores)").range(1, 1024);
  verb.option("--save", o->save, "write the JSON document to a file");
  verb.option("--md", o->markdown, "write a Markdown report to a file");
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = mutants(*o); });
}

}  // namespace assay
