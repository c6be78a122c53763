// `assay fuzz`: a campaign of fuzzing engines over kernels and processes, resumable, or a job array of them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "cases/file_source.h"
#include "cli/fleet.h"
#include "cli/fuzz_options.h"
#include "cli/verbs.h"
#include "fuzz/campaign.h"
#include "fuzz/campaign_summary.h"
#include "fuzz/durable_file.h"
#include "fuzz/duration.h"
#include "fuzz/known_failures.h"
#include "oracle/error.h"
#include "reports/campaign_markdown.h"
#include "reports/campaign_progress.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stop_asked{false};

void ask_to_stop(int /*signal*/) { stop_asked = true; }

/// The engine beside this program, or the one that an environment variable names.
fs::path engine_program(const char* name, const char* variable) {
  const char* named = std::getenv(variable);
  return named != nullptr ? fs::path(named) : fs::read_symlink("/proc/self/exe").parent_path() / name;
}

void need_program(const fs::path& program) {
  if (fs::exists(program)) return;
  throw EnvironmentError("there is no fuzzing engine " + program.string() +
                         ": it is built where clang's libFuzzer runtime is found (Debian: packages clang and "
                         "libclang-rt-<version>-dev), by `./dev build`");
}

EngineTools engine_tools() {
  return {.engine = engine_program("assay_fuzz", "ASSAY_FUZZ_ENGINE"),
          .mutant_engine = engine_program("assay_mutants_fuzz", "ASSAY_MUTANTS_FUZZ_ENGINE"),
          .seeds = [](const std::string& op) -> std::vector<std::string> {
            try {
              return {fs::absolute(find_data_file("fuzz/corpus/" + op)).string()};
            } catch (const InputError&) {  // an op without committed inputs
              return {};
            }
          }};
}

std::vector<CampaignKernel> chosen_kernels(const FuzzOptions& o, Fleet& fleet) {
  std::vector<std::string> names = o.kernels;
  if (names.empty()) names = {o.plugins.empty() ? "correct" : "plugins"};
  const std::vector<KernelIdentity> chosen = choose_kernels(fleet, names);
  if (!fleet.lost().empty()) throw fleet.lost().front().how;
  std::vector<CampaignKernel> kernels;
  for (const KernelIdentity& k : chosen) {
    const bool named = std::find(names.begin(), names.end(), k.name) != names.end();
    if (o.device ? !k.device : k.device && !named) continue;  // without --device those that are named
    if (!o.ops.empty() && std::find(o.ops.begin(), o.ops.end(), k.op) == o.ops.end()) continue;
    kernels.push_back({.name = k.name,
                       .op = k.op,
                       .plugin = k.plugin.empty() ? "" : fs::absolute(k.plugin).string(),
                       .device = k.device,
                       .mutant = k.mutant});
  }
  for (const std::string& op : o.ops)
    if (std::none_of(kernels.begin(), kernels.end(), [&](const CampaignKernel& k) { return k.op == op; }))
      throw InputError("--op " + op + ": none of the chosen kernels computes it" + (o.device ? " on a device" : ""));
  if (kernels.empty())
    throw InputError(o.device ? "--device: none of the chosen kernels runs on a device" : "there is no kernel to fuzz");
  return kernels;
}

CampaignSpec spec_of(const FuzzOptions& o) {
  CampaignSpec spec;
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60), o.plugins);
  spec.kernels = chosen_kernels(o, *fleet);
  if (std::any_of(spec.kernels.begin(), spec.kernels.end(), [](const CampaignKernel& k) { return k.device; })) {
    const DeviceInfo info = fleet->device();
    if (!info.absent.empty()) throw EnvironmentError("there is no device for device kernels: " + info.absent);
    spec.devices = info.count;
  }
  spec.jobs = o.jobs > 0 ? o.jobs : std::max(1U, std::thread::hardware_concurrency());
  spec.runs = o.runs;
  spec.seconds = !o.time.empty() ? read_duration(o.time, "--time") : o.runs > 0 ? 0 : 600;
  spec.deadline = o.deadline;
  spec.seed = o.seed;
  spec.known = o.known.empty() ? "" : fs::absolute(o.known).string();
  spec.command = typed_command();
  return spec;
}

/// Kept while it runs, so that the signals end a campaign in good order.
class StopSignals {
 public:
  StopSignals() {
    struct sigaction action = {};
    action.sa_handler = ask_to_stop;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~StopSignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

/// Entries of the ledger, for kernels of the campaign, whose case does not fail today as they say.
std::vector<std::string> unexpected(const KnownFailures& ledger, const std::vector<CampaignKernel>& kernels) {
  std::vector<std::string> texts, plugins;
  if (ledger.entries().empty()) return texts;
  for (const CampaignKernel& kernel : kernels)
    if (!kernel.plugin.empty() && std::find(plugins.begin(), plugins.end(), kernel.plugin) == plugins.end())
      plugins.push_back(kernel.plugin);
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60), plugins);
  for (const LedgerCheck& check : check_ledger(ledger, *fleet, Level::kT2)) {
    const bool ours = std::any_of(kernels.begin(), kernels.end(),
                                  [&](const CampaignKernel& k) { return k.name == check.entry->kernel; });
    if (ours && is_unexpected(check)) texts.push_back(check.text);
  }
  return texts;
}

void print(const CampaignSummary& summary, const fs::path& folder) {
  fmt::print("{}\n", campaign_verdict(summary));
  for (const CampaignFinding& f : summary.findings)
    fmt::print("  {} {}: {} times, {}{}\n", f.kernel, f.signature, f.times, f.folder,
               f.known.empty() ? "" : ", known as " + f.known);
  for (const QuarantineEntry& e : summary.quarantine)
    fmt::print("  {} {}: {}: {}{}\n", fmt::join(e.kernels, ","), e.kind, e.how,
               (folder / "quarantine" / e.name).string(), e.known.empty() ? "" : ", known as " + e.known);
  for (const std::string& pass : summary.passes) fmt::print("  ledger: {}\n", pass);
  for (const auto& [op, names] : summary.never_reached)
    if (!names.empty()) fmt::print("  regimes of {} never reached: {}\n", op, fmt::join(names, ", "));
  fmt::print("summary: {}\n", (folder / "summary.md").string());
}

int fuzz(const FuzzOptions& o) {
  const bool member = o.member >= 0;
  if (o.resume.empty() && o.dir.empty()) throw InputError("--dir: a folder for the campaign is needed");
  if (o.slurm > 0) {
    chosen_kernels(o, *open_fleet(std::chrono::seconds(60), o.plugins));  // a wrong name is an error here and now
    return submit_array(o);
  }
  const fs::path shared = fs::absolute(o.resume.empty() ? o.dir : o.resume);
  const CampaignFolders folders{.state = member ? shared / "members" / std::to_string(o.member) : shared,
                                .shared = shared};
  // A member that was killed, or put back into the queue, is started by the same command line.
  const bool resumes = !o.resume.empty() || (member && fs::exists(folders.state / "campaign.json"));
  const EngineTools tools = engine_tools();
  std::optional<CampaignSpec> spec;
  if (!resumes) {
    spec = spec_of(o);
    if (member) spec->seed += 1000003 * static_cast<std::uint64_t>(o.member);
  }
  const CampaignSpec running = spec ? *spec : load_campaign(folders.state / "campaign.json").spec;
  const std::string known = o.known.empty() ? running.known : o.known;
  const KnownFailures ledger = known.empty() ? KnownFailures() : KnownFailures(known);
  {
    const StopSignals signals;
    for (const CampaignKernel& kernel : running.kernels)
      need_program(kernel.mutant ? tools.mutant_engine : tools.engine);
    Campaign campaign(folders, tools, spec, member);
    if (!o.resume.empty())
      campaign.set_limits(o.time.empty() ? std::nullopt : std::optional(read_duration(o.time, "--time")),
                          o.runs > 0 ? std::optional(o.runs) : std::nullopt);
    CampaignProgress progress;
    campaign.run({.stop = &stop_asked,
                  .show = [&](const CampaignView& view) { progress.show(view); },
                  .say = [&](const std::string& text) { progress.say("assay: " + text); }});
  }
  CampaignSummary summary = campaign_summary(shared);
  mark_known(summary, ledger);
  summary.passes = unexpected(ledger, running.kernels);
  const std::string text = write_summary(summary, shared);
  if (!o.json.empty()) write_durably(o.json, text);
  print(summary, shared);
  return exit_code(summary);
}

}  // namespace

void add_fuzz(Verb& app, int& exit_code) {
  Verb verb = app.add(
      "fuzz", "fuzz kernels for a given time, on many processes and devices; resumable, or as a Slurm job array");
  const auto o = std::make_shared<FuzzOptions>();
  verb.option("kernels", o->kernels,
              "kernel names, `correct`, `mutants` or `plugins`; default: `plugins` if there are any, else `correct`");
  add_plugin_option(verb, o->plugins);
  verb.option("--op", o->ops, "op to fuzz (repeatable; default: all that the kernels compute)").one_each();
  verb.option("--dir", o->dir, "folder of the campaign: corpus, findings, quarantine, state, summary");
  verb.option("--resume", o->resume,
              "go on with the campaign in this folder; --time and --runs replace its limits, the rest is as it was");
  verb.option("--time", o->time, "how long: 90s, 10m, 2h, 3d (default 10m, or no limit with --runs)");
  verb.option("--runs", o->runs, "stop after about this many executions").positive();
  verb.option("--jobs", o->jobs, "engine processes (default: cores)").range(1, 1024);
  verb.flag("--device", o->device, "device kernels only, over all GPUs of the host");
  verb.option("--known", o->known, "ledger of known failures, which do not fail the campaign; one that passes does");
  verb.option("--deadline", o->deadline, "seconds after which one execution counts as hung (default 60)")
      .range(1, 86400);
  verb.option("--seed", o->seed, "of everything drawn");
  verb.option("--json", o->json, "write the summary to this file too");
  verb.option("--slurm", o->slurm,
              "write DIR/campaign.sbatch, a job array of this many members over DIR, and submit it")
      .range(1, 100000);
  verb.option("--sbatch", o->sbatch, "one more option of sbatch, such as --partition=gpu (repeatable)").one_each();
  verb.flag("--no-submit", o->no_submit, "with --slurm: only write the script");
  verb.option("--member", o->member,
              "with the number of a member of a job array: its own state in DIR/members, the rest shared")
      .range(0, 99999);
  verb.callback([o, &exit_code] { exit_code = fuzz(*o); });
}

}  // namespace assay
