// Campaign: supervises fuzzing engines for a given time; goes on where it stopped, however it was stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/campaign_state.h"
#include "fuzz/engine_command.h"
#include "fuzz/engine_process.h"
#include "fuzz/quarantine.h"
#include "fuzz/try_lock.h"
#include "reports/campaign_progress.h"

namespace assay {

/// Engines that die soon are started again ever later; one that keeps dying is given up.
struct DeathPolicy {
  std::chrono::milliseconds soon{10'000};      ///< after its start
  std::chrono::milliseconds first_delay{100};  ///< before the next start; doubles
  int deaths = 8;                              ///< in a row
};

struct CampaignHooks {
  const std::atomic<bool>* stop = nullptr;             ///< set by a signal handler: end early, in good order
  std::function<void(const CampaignView&)> show = {};  ///< about once a second
  std::function<void(const std::string&)> say = {};    ///< a line about something that went wrong
};

class Campaign {
 public:
  /// `fresh`: starts one in folders.state; nothing: goes on with what is there. `members`: other processes share
  /// folders.shared. Throws InputError if there is a campaign already, or none, and EnvironmentError if another process
  /// runs it, or if a file cannot be written.
  Campaign(CampaignFolders folders, EngineTools tools, const std::optional<CampaignSpec>& fresh, bool members = false);

  /// A longer or shorter budget than the stored one.
  void set_limits(std::optional<double> seconds, std::optional<std::int64_t> runs);
  /// Runs to the end of the budget, then merges the corpora. Throws EnvironmentError where an engine cannot work (its
  /// program, the disk), with everything written so far intact.
  void run(const CampaignHooks& hooks, const DeathPolicy& policy = {});

  const CampaignState& state() const { return state_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Task {
    Assignment what;
    int deaths = 0;  ///< in a row
    Clock::time_point not_before{};
    bool running = false;
  };
  struct Slot {
    std::unique_ptr<EngineProcess> engine;
    Task* task = nullptr;
    std::int64_t number = 0;
    std::string device;  ///< that it uses, for device kernels
  };

  void recover();
  void fold(std::int64_t number);
  void keep();
  Executions so_far() const;
  void ask_for_regimes();
  bool stopped() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  double left() const;
  bool over() const;
  Task* next_task();
  void start(Slot& slot);
  std::string free_device() const;
  void end(Slot& slot, bool asked);
  void judge_death(Task& task, const EngineProcess& engine, std::int64_t number);
  void count_death(Task& task, const std::string& how, bool outside);
  EngineDeath death_of(const Task& task, std::string how, std::string tail) const;
  /// Moves what an engine left under a prefix into the quarantine.
  std::size_t quarantined(const Task& task, const std::filesystem::path& prefix, const EngineDeath& death) const;
  EngineDeath repeated(const Task& task, const std::filesystem::path& input, const EngineDeath& death) const;
  void stop_engines();
  void merge();
  bool run_merge(const std::filesystem::path& out, const std::string& op);
  void show(const std::string& doing);

  CampaignFolders folders_;
  EngineTools tools_;
  CampaignState state_;
  bool members_;
  std::unique_ptr<TryLock> lock_;
  CampaignHooks hooks_;
  DeathPolicy policy_;
  Quarantine quarantine_;
  std::vector<Task> tasks_;
  std::vector<Slot> slots_;
  std::int64_t executed_ = 0, shown_ = 0;  ///< as last seen, and when last shown
  Clock::time_point shown_at_{};
};

}  // namespace assay
