// EngineProcess: a fuzzing engine as a child that dies with its supervisor, and the tail of what it says.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay {

class EngineProcess {
 public:
  using Clock = std::chrono::steady_clock;

  /// What `tail` keeps: both streams as one, or the standard output alone, with the errors in `errors`.
  enum class Keep : std::uint8_t { kBoth, kOutput };

  /// Starts argv[0] (a path) in a process group of its own, with `environment` added to this process's. The kernel
  /// kills it when the thread that called this ends. Throws EnvironmentError if it cannot be started.
  EngineProcess(const std::vector<std::string>& argv,
                const std::vector<std::pair<std::string, std::string>>& environment, Keep keep = Keep::kBoth);
  /// Kills and reaps it if it still runs.
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  /// Takes in what it has printed, and returns whether it has ended; never waits.
  bool ended();
  /// Waits until it has ended or the time has come; returns whether it has ended.
  bool wait_until(Clock::time_point time);
  void ask_to_stop();  ///< SIGTERM
  void kill();         ///< SIGKILL to its whole group; returns when it is reaped

  double cpu_seconds() const;  ///< that all its threads have had of a core so far

  bool signalled() const;   ///< ended by a signal
  int code() const;         ///< the exit code, or the signal's number
  std::string how() const;  ///< "exit 77", "signal 9 (SIGKILL)"
  /// The last 64 KiB of its standard output and error.
  const std::string& tail() const { return output_.text; }
  const std::string& errors() const { return errors_.text; }
  Clock::time_point started() const { return started_; }

 private:
  struct Stream {
    int fd = -1;
    std::string text = {};
    void drain();
    void cut();
  };

  pid_t pid_ = -1;
  Stream output_, errors_;
  int status_ = 0;
  bool reaped_ = false;
  double cpu_seconds_ = 0;
  Clock::time_point started_;
};

/// What a program prints that ends by itself, at most 64 KiB. Throws EnvironmentError if it fails or takes longer than
/// `patience`.
std::string output_of(const std::vector<std::string>& argv, std::chrono::milliseconds patience);

}  // namespace assay
