// The supervisor's loop: starting engines, what their ends mean, and the clock.
#include "fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "fuzz/durable_file.h"
#include "fuzz/shared_corpus.h"
#include "oracle/error.h"
#include "reports/environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPoll{20}, kTick{1000};
constexpr milliseconds kOwnEnd{2000};  ///< for engines to see by themselves that their time is over
constexpr milliseconds kStopPatience{5000};
constexpr milliseconds kListPatience{60'000};
constexpr int kRefused = 2, kNoEnvironment = 3, kNotStarted = 127;  ///< exit codes
constexpr double kShortestTurn = 5, kLongestTurn = 600;             ///< seconds, where engines take turns

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// An engine's statistics; nothing if it has not written any, or was ended before they were whole.
Executions read_stats(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  const std::string name = file.string();
  const nlohmann::json document = nlohmann::json::parse(read_whole(file.string()), nullptr, false);
  return document.is_discarded() ? Executions{} : executions_from_json(JsonField(document, "", name));
}

/// Folders in a folder.
std::int64_t entries_in(const fs::path& folder) {
  std::error_code none;
  return std::count_if(fs::directory_iterator(folder, none), fs::directory_iterator(),
                       [&](const auto& entry) { return entry.is_directory(none); });
}

}  // namespace

Campaign::Campaign(CampaignFolders folders, EngineTools tools, const std::optional<CampaignSpec>& fresh, bool members)
    : folders_(std::move(folders)), tools_(std::move(tools)), members_(members), quarantine_(folders_.quarantine()) {
  const fs::path file = folders_.state / "campaign.json";
  if (fresh) {
    if (fs::exists(file))
      throw InputError(folders_.state.string() + ": holds a campaign already; `assay fuzz --resume " +
                       folders_.state.string() + "` goes on with it");
    fs::create_directories(folders_.state);
  } else {
    load_campaign(file);  // throws where there is none, before anything is made
  }
  lock_ = std::make_unique<TryLock>(folders_.state / "lock");
  if (!lock_->held())
    throw EnvironmentError((folders_.state / "lock").string() + ": process " + lock_->holder() +
                           " runs this campaign already");
  if (fresh) {
    state_.spec = *fresh;
    state_.started = utc_now();
  } else {
    state_ = load_campaign(file);
  }
  for (Assignment& assignment : assignments(state_.spec.kernels, state_.spec.jobs))
    tasks_.push_back({.what = std::move(assignment)});
  for (const char* folder : {"stats", "artifacts"}) fs::create_directories(folders_.state / folder);
  fs::create_directories(folders_.findings());
  for (const Task& task : tasks_) fs::create_directories(folders_.corpus(task.what.op));
  if (fresh) ask_for_regimes();
  recover();
  keep();
}

void Campaign::ask_for_regimes() {
  for (const Task& task : tasks_) {
    if (state_.regimes.contains(task.what.op)) continue;
    std::istringstream lines(output_of(EngineCommand(folders_, tools_, 0).list_regimes(task.what), kListPatience));
    std::vector<std::string>& names = state_.regimes[task.what.op];
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) names.push_back(line);
  }
}

void Campaign::recover() {
  for (const auto& [number, name] : std::map(state_.open)) {
    const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                   [&label = name](const Task& t) { return t.what.label == label; });
    if (task != tasks_.end())
      quarantined(*task, folders_.artifacts(number), death_of(*task, "the supervisor was killed at the same time", {}));
    fold(number);
  }
  for (const char* folder : {"stats", "artifacts"}) {  // of engines that are accounted for
    fs::remove_all(folders_.state / folder);
    fs::create_directories(folders_.state / folder);
  }
  std::error_code none;
  for (const auto& op : fs::directory_iterator(folders_.shared / "corpus", none))
    if (op.is_directory()) state_.torn += remove_torn(op.path(), members_);
}

void Campaign::set_limits(std::optional<double> seconds, std::optional<std::int64_t> runs) {
  if (seconds) state_.spec.seconds = *seconds;
  if (runs) state_.spec.runs = *runs;
}

void Campaign::keep() { save(state_, folders_.state / "campaign.json"); }

void Campaign::fold(std::int64_t number) {
  if (!state_.open.contains(number)) return;
  state_.done += read_stats(folders_.stats(number));
  state_.open.erase(number);
  keep();  // from here on it is counted, so that its file may go
  executed_ = so_far().executions;
  fs::remove(folders_.stats(number));
}

Executions Campaign::so_far() const {
  Executions all = state_.done;
  for (const auto& [number, label] : state_.open) all += read_stats(folders_.stats(number));
  return all;
}

double Campaign::left() const { return state_.spec.seconds > 0 ? state_.spec.seconds - state_.seconds : -1; }

bool Campaign::over() const {
  if (state_.spec.seconds > 0 && state_.seconds >= state_.spec.seconds) return true;
  if (state_.spec.runs > 0 && executed_ >= state_.spec.runs) return true;
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [&](const Task& task) { return state_.given_up.contains(task.what.label); });
}

/// The one whose kernels have run least; null if all run, or wait after a death.
Campaign::Task* Campaign::next_task() {
  Task* best = nullptr;
  const auto each = [&](const Task& task) {
    return state_.turns[task.what.label] / static_cast<double>(task.what.kernels.size());
  };
  for (Task& task : tasks_) {
    if (state_.given_up.contains(task.what.label) || task.running || task.not_before > Clock::now()) continue;
    if (best == nullptr || each(task) < each(*best)) best = &task;
  }
  return best;
}

/// The one that fewest engines use; empty without devices.
std::string Campaign::free_device() const {
  const std::vector<std::string> devices = visible_devices(state_.spec.devices);
  const auto users = [&](const std::string& device) {
    return std::count_if(slots_.begin(), slots_.end(),
                         [&](const Slot& slot) { return slot.engine != nullptr && slot.device == device; });
  };
  const auto best = std::min_element(devices.begin(), devices.end(),
                                     [&](const std::string& a, const std::string& b) { return users(a) < users(b); });
  return best == devices.end() ? "" : *best;
}

void Campaign::start(Slot& slot) {
  Task* task = next_task();
  if (task == nullptr) return;
  const std::size_t alive = tasks_.size() - state_.given_up.size();
  double seconds = left();
  if (alive > slots_.size()) {
    const double rounds = 4 * static_cast<double>(alive) / static_cast<double>(slots_.size());
    const double turn = std::clamp(state_.spec.seconds / rounds, kShortestTurn, kLongestTurn);
    seconds = seconds < 0 ? turn : std::min(seconds, turn);
  }
  std::int64_t runs = 0;
  if (state_.spec.runs > 0) {
    const auto part = [](std::int64_t whole, std::size_t parts) {
      const auto n = static_cast<std::int64_t>(parts);
      return (whole + n - 1) / n;
    };
    runs = std::min(part(state_.spec.runs, alive), part(state_.spec.runs - executed_, std::min(alive, slots_.size())));
    runs = std::max<std::int64_t>(runs, 1);
  }
  std::vector<std::pair<std::string, std::string>> environment{{"ASSAY_FUZZ_SUPERVISED", "1"}};
  slot.device = task->what.device ? free_device() : "";
  if (!slot.device.empty()) environment.emplace_back("CUDA_VISIBLE_DEVICES", slot.device);
  slot.number = state_.next++;
  slot.task = task;
  state_.open[slot.number] = task->what.label;
  keep();
  slot.engine = std::make_unique<EngineProcess>(EngineCommand(folders_, tools_, state_.spec.deadline)
                                                    .fuzz(task->what, slot.number, state_.spec.seed, seconds, runs),
                                                environment);
  task->running = true;
}

/// Takes account of an engine that has ended; `asked`: by us.
void Campaign::end(Slot& slot, bool asked) {
  const std::unique_ptr<EngineProcess> engine = std::move(slot.engine);
  Task& task = *slot.task;
  task.running = false;
  state_.turns[task.what.label] += seconds_since(engine->started());
  const int code = engine->signalled() ? -1 : engine->code();
  const bool well = code == 0 || (asked && code != kRefused && code != kNoEnvironment);
  const bool idle = !asked && well && read_stats(folders_.stats(slot.number)).executions == 0;
  if (well && !idle) task.deaths = 0;
  if (well) quarantined(task, folders_.artifacts(slot.number), death_of(task, engine->how(), engine->tail()));
  if (!well) judge_death(task, *engine, slot.number);
  if (idle) count_death(task, "ended without an execution: " + last_line(engine->tail()), false);
  fold(slot.number);
}

void Campaign::judge_death(Task& task, const EngineProcess& engine, std::int64_t number) {
  const std::string words = last_line(engine.tail());
  if (!engine.signalled()) {
    if (engine.code() == kRefused) throw InputError("the engine of " + task.what.label + " refuses: " + words);
    if (engine.code() == kNoEnvironment || engine.code() == kNotStarted)
      throw EnvironmentError("the engine of " + task.what.label + " stopped: " + words);
  }
  const EngineDeath death = death_of(task, engine.how(), engine.tail());
  const std::size_t inputs = quarantined(task, folders_.artifacts(number), death);
  // Whoever sends these two is neither a kernel nor the engine: a user, or the system when memory runs out.
  const bool outside = inputs == 0 && engine.signalled() && (engine.code() == SIGKILL || engine.code() == SIGTERM);
  if (inputs == 0 && !outside) quarantine_.take_without_input(death);
  ++state_.restarts;
  if (seconds_since(engine.started()) > std::chrono::duration<double>(policy_.soon).count()) task.deaths = 0;
  count_death(task, death.how + ": " + words, outside);
}

void Campaign::count_death(Task& task, const std::string& how, bool outside) {
  task.not_before = Clock::now() + policy_.first_delay * (1 << std::min(task.deaths, 16));
  if (++task.deaths < policy_.deaths) return;
  const std::string why =
      fmt::format("its engine ended {} times in a row soon after its start; last: {}", task.deaths, how);
  if (outside) throw EnvironmentError(task.what.label + ": " + why);
  state_.given_up[task.what.label] = why;
  if (hooks_.say)
    hooks_.say(fmt::format("{} ({}) is given up: {}", task.what.label, fmt::join(task.what.kernels, ", "), why));
}

EngineDeath Campaign::death_of(const Task& task, std::string how, std::string tail) const {
  return {.op = task.what.op,
          .kernels = task.what.kernels,
          .how = std::move(how),
          .tail = std::move(tail),
          .command = fmt::format("{}", fmt::join(EngineCommand(folders_, tools_, 0).base(task.what), " "))};
}

std::size_t Campaign::quarantined(const Task& task, const fs::path& prefix, const EngineDeath& death) const {
  return quarantine_.take(
      prefix, death, [&](const fs::path& input, const EngineDeath& first) { return repeated(task, input, first); });
}

EngineDeath Campaign::repeated(const Task& task, const fs::path& input, const EngineDeath& death) const {
  EngineDeath exact = death;
  fs::create_directories(folders_.repeat());
  for (const std::string& kernel : task.what.kernels) {
    EngineProcess again(EngineCommand(folders_, tools_, state_.spec.deadline).repeat(task.what, kernel, input.string()),
                        {});
    const bool ended = again.wait_until(Clock::now() + std::chrono::seconds(state_.spec.deadline));
    again.kill();
    if (!ended || (!again.signalled() && again.code() == 0)) continue;
    exact.kernels = {kernel};
    exact.how = again.how();
    exact.tail += "\nalone with " + kernel + ":\n" + again.tail();
    break;
  }
  fs::remove_all(folders_.repeat());
  return exact;
}

void Campaign::stop_engines() {
  for (const milliseconds patience : {kOwnEnd, kStopPatience}) {
    const auto until = Clock::now() + patience;
    for (Slot& slot : slots_)
      if (slot.engine && (patience == kStopPatience || stopped())) slot.engine->ask_to_stop();
    for (Slot& slot : slots_)
      if (slot.engine && slot.engine->wait_until(until)) end(slot, patience == kStopPatience || stopped());
  }
  for (Slot& slot : slots_) {
    if (!slot.engine) continue;
    slot.engine->kill();
    end(slot, true);
  }
}

void Campaign::run(const CampaignHooks& hooks, const DeathPolicy& policy) {
  hooks_ = hooks;
  policy_ = policy;
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of the write that meets it
  merge();
  const std::int64_t first = state_.next;
  slots_.resize(std::max(1U, state_.spec.jobs));
  const auto slots_end = [&] { slots_.clear(); };
  try {
    auto tick = Clock::now();
    while (!stopped() && !over()) {
      for (Slot& slot : slots_) {
        if (slot.engine && slot.engine->ended()) end(slot, false);
        if (!slot.engine) start(slot);
      }
      std::this_thread::sleep_for(kPoll);
      if (Clock::now() - tick < kTick) continue;
      state_.seconds += seconds_since(tick);
      tick = Clock::now();
      executed_ = so_far().executions;
      keep();
      show(fmt::format("fuzzing on {} engines", slots_.size()));
    }
    state_.seconds += seconds_since(tick);
    stop_engines();
    keep();
  } catch (...) {
    slots_end();  // kills them; what they have written stays for a resume
    throw;
  }
  slots_end();
  if (state_.next > first) merge();
  keep();
}

void Campaign::merge() {
  std::vector<std::string> ops;
  for (const Task& task : tasks_)
    if (std::find(ops.begin(), ops.end(), task.what.op) == ops.end()) ops.push_back(task.what.op);
  for (const std::string& op : ops) {
    if (stopped()) return;
    const TryLock turn(folders_.shared / "corpus" / (op + ".lock"));
    if (!turn.held()) continue;  // another member does it
    show("merging the corpus of " + op);
    merge_corpus(folders_.corpus(op), folders_.merge(), [&](const fs::path& out) { return run_merge(out, op); });
  }
}

/// One pass per assignment: which kernel an input goes to depends on the set, and with it what the input shows.
bool Campaign::run_merge(const fs::path& out, const std::string& op) {
  const auto until = Clock::now() + std::chrono::seconds(60) +
                     std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(state_.spec.seconds / 10));
  for (Task& task : tasks_) {
    if (task.what.op != op || state_.given_up.contains(task.what.label)) continue;
    EngineProcess engine(EngineCommand(folders_, tools_, state_.spec.deadline).merge(task.what, out),
                         {{"ASSAY_FUZZ_SUPERVISED", "1"}, {"TMPDIR", folders_.merge().string()}});
    while (!engine.wait_until(Clock::now() + kPoll))
      if (stopped() || Clock::now() >= until) return false;
    quarantined(task, folders_.merge() / "artifacts-", death_of(task, "in a merge", engine.tail()));
    if (engine.signalled() || engine.code() != 0) {
      if (hooks_.say)
        hooks_.say(fmt::format("the corpus of {} is not merged: {}: {}", op, engine.how(), last_line(engine.tail())));
      return false;
    }
  }
  return true;
}

void Campaign::show(const std::string& doing) {
  if (!hooks_.show) return;
  const double rest = state_.spec.seconds > 0 ? std::max(0.0, left()) : -1;
  CampaignView view{.seconds = state_.seconds, .left = rest, .done = so_far(), .doing = doing};
  const double since = seconds_since(shown_at_);
  if (shown_ > 0 && since > 0) view.rate = static_cast<double>(view.done.executions - shown_) / since;
  shown_ = view.done.executions;
  shown_at_ = Clock::now();
  for (const auto& [op, names] : state_.regimes) view.corpus += corpus_size(folders_.corpus(op));
  view.findings = entries_in(folders_.findings());
  view.quarantined = static_cast<std::int64_t>(quarantine_.entries().size());
  hooks_.show(view);
}

}  // namespace assay
