// `assay check KERNEL...`: run cases, judge every output element, report; the verb for CI.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cases/materialize.h"
#include "cli/fleet.h"
#include "cli/sanitize.h"
#include "cli/verbs.h"
#include "fuzz/durable_file.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "oracle/error.h"
#include "reports/console.h"
#include "reports/environment.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/progress.h"
#include "reports/view.h"

namespace assay {
namespace {

struct Options {
  std::vector<std::string> kernels;
  std::vector<std::string> suites, cases, plugins;
  std::string shard = "1/1", save, markdown, junit;
  std::string sanitize;  ///< a tool of compute-sanitizer, or empty
  double budget = 0;
  int deadline = 120;
  int repeat = 0;  ///< 0: two runs of device kernels, one of others
  unsigned jobs = 0;
  Level level = Level::kT1;
  bool json = false;
};

using Work = SanitizeItem;

std::vector<Work> work_of(const Options& options) {
  std::vector<Work> work;
  std::vector<std::string> suites = options.suites;
  if (suites.empty() && options.cases.empty()) suites = {"smoke"};
  for (const std::string& suite : suites)
    for (Case& c : suite_cases(suite)) work.push_back({suite, std::move(c)});
  for (const std::string& line : options.cases) work.push_back({"command line", parse_case(line)});
  std::size_t index = 0, count = 0;
  if (std::sscanf(options.shard.c_str(), "%zu/%zu", &index, &count) != 2 || index < 1 || index > count)
    throw InputError("--shard " + options.shard + ": must be i/n with 1 <= i <= n");
  std::vector<Work> mine;
  for (std::size_t i = index - 1; i < work.size(); i += count) mine.push_back(std::move(work[i]));
  return mine;
}

/// Device kernels have many threads, whose order may show in the bits.
Repeats repeats_of(const Options& options, const KernelIdentity& kernel) {
  const int runs = options.repeat > 0 ? options.repeat : kernel.device ? 2 : 1;
  return {.runs = runs, .reruns = kernel.device || runs > 1 ? 3 : 0};
}

/// The environment, and the devices that the records' kernels ran on.
nlohmann::json environment_of(const std::vector<Record>& records) {
  nlohmann::json where = environment();
  std::set<std::string> devices;
  for (const Record& record : records)
    if (!record.device.empty()) devices.insert(record.device);
  if (!devices.empty()) where["device"] = fmt::format("{}", fmt::join(devices, "; "));
  return where;
}

/// The verdict on a plug-in that crashed or hung before any case: no case is to blame.
Record record_of(const LostPlugin& plugin) {
  Record record;
  record.suite = "plugins";
  record.kernel = std::filesystem::path(plugin.file).filename().string();
  record.verdict.kind = plugin.how.status == RunStatus::kHung ? CaseVerdict::kHung : CaseVerdict::kCrashed;
  record.verdict.reason = plugin.how.what();
  record.repro = "assay list kernels --plugin " + shell_quoted(plugin.file);
  return record;
}

/// Runs the work on `jobs` threads, each with its own worker processes; records come back in the order of the work.
std::vector<Record> run_all(const Options& options, const std::vector<Work>& work, bool& out_of_time) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::chrono::seconds deadline(options.deadline);
  std::vector<std::string> plugins = options.plugins, names = options.kernels;
  if (names.empty()) names = {plugins.empty() ? "correct" : "plugins"};
  const std::unique_ptr<Fleet> first = open_fleet(deadline, plugins);
  const std::vector<KernelIdentity> kernels = choose_kernels(*first, names);
  std::vector<Record> records;
  for (const LostPlugin& lost : first->lost()) {
    records.push_back(record_of(lost));
    std::erase_if(plugins, [&](const std::string& file) { return std::filesystem::equivalent(file, lost.file); });
  }
  std::vector<std::vector<Record>> done(work.size());
  std::int64_t total = 0;
  for (const Work& item : work)
    for (const KernelIdentity& kernel : kernels) total += takes(kernel, item.c);
  Progress progress(total);
  Summary summary;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  const auto serve = [&] {
    try {
      const std::unique_ptr<Fleet> fleet = open_fleet(deadline, plugins);
      for (std::size_t i; (i = next++) < work.size();) {
        if (options.budget > 0 && std::chrono::duration<double>(Clock::now() - start).count() > options.budget) {
          const std::lock_guard lock(mutex);
          out_of_time = true;
          return;
        }
        const Problem problem = materialize(work[i].c);
        for (const KernelIdentity& kernel : kernels) {
          if (!takes(kernel, work[i].c)) continue;
          {
            const std::lock_guard lock(mutex);
            progress.show(summary, kernel.name + ": " + print_case(work[i].c));
          }
          Record record = run_problem(work[i].c, problem, kernel.name, *fleet, options.level,
                                      repeats_of(options, kernel));
          record.suite = work[i].suite;
          record.cells = coverage_cells(work[i].c);
          record.repro = plugin_repro(kernel, record.case_line);
          const std::lock_guard lock(mutex);
          add(summary, record);
          done[i].push_back(std::move(record));
        }
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = work.size();
    }
  };
  const unsigned jobs = options.jobs > 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned j = 1; j < jobs; ++j) threads.emplace_back(serve);
  serve();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  for (std::vector<Record>& some : done)
    for (Record& record : some) records.push_back(std::move(record));
  return records;
}

std::vector<Record> run_sanitized(const Options& options, const std::vector<Work>& work) {
  const std::chrono::seconds deadline(options.deadline);
  if (!options.plugins.empty()) throw InputError("--sanitize " + options.sanitize + ": not with --plugin");
  const std::vector<std::string> names = options.kernels.empty() ? std::vector<std::string>{"correct"} : options.kernels;
  return sanitize({options.sanitize, deadline}, choose_kernels(*open_fleet(deadline), names), work);
}

int check(const Options& options) {
  const std::vector<Work> work = work_of(options);
  bool out_of_time = false;
  const std::vector<Record> records = options.sanitize.empty() ? run_all(options, work, out_of_time) : run_sanitized(options, work);
  const nlohmann::json where = environment_of(records);
  const nlohmann::json document = to_json(records, where);
  if (!options.save.empty()) write_durably(options.save, json_text(document));
  if (!options.markdown.empty()) write_durably(options.markdown, markdown_report(records, where));
  if (!options.junit.empty()) write_durably(options.junit, junit_report(records, where));
  if (options.json) fmt::print("{}", json_text(document));
  else fmt::print("{}", console_report(records));
  if (out_of_time) fmt::print(stderr, "assay: the budget of {} s ended before all cases ran\n", options.budget);
  return exit_code(summarize(records));
}

}  // namespace

void add_check(Verb& app, int& exit_code) {
  Verb verb = app.add("check", "run cases on kernels, judge every output element, report");
  const auto o = std::make_shared<Options>();
  verb.option("kernels", o->kernels, "kernel names, `correct` (all without a planted fault), `mutants`, or `plugins`; default: "
                                          "`plugins` if there are any, else `correct`");
  add_plugin_option(verb, o->plugins);
  verb.option("--suite", o->suites, "suite to run (repeatable; default smoke)").one_each();
  verb.option("--case", o->cases, "one case line (repeatable)").one_each();
  verb.option("--shard", o->shard, "i/n: every n-th case, from the i-th");
  verb.option("--budget", o->budget, "start no new case after this many seconds");
  verb.option("--deadline", o->deadline, "seconds after which one run counts as hung").range(1, 86400);
  verb.option("--repeat", o->repeat, "runs of each case, every second one with other bytes in unused storage; their bits must be "
                                          "equal (default: 2 on a device, else 1)").range(1, 100);
  verb.option("--jobs", o->jobs, "threads, each with its own worker (default: cores)").range(1, 1024);
  verb.option("--sanitize", o->sanitize, "run device kernels under this tool of compute-sanitizer and report its findings; outputs "
                                              "are not judged")
      .one_of({"memcheck", "racecheck", "initcheck", "synccheck"});
  add_level_option(verb, o->level);
  verb.option("--save", o->save, "write the JSON document to a file");
  verb.option("--md", o->markdown, "write a Markdown report to a file");
  verb.option("--junit", o->junit, "write a JUnit report to a file");
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = check(*o); });
}

}  // namespace assay
