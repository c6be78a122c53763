// A worker under compute-sanitizer: runs, and what the tool wrote meanwhile.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

struct SanitizerOptions {
  std::string tool;                  ///< memcheck, racecheck, initcheck or synccheck
  std::vector<std::string> command;  ///< argv of the worker program
  std::chrono::milliseconds deadline{60'000};
};

/// compute-sanitizer on PATH or in CUDA_HOME/bin or /usr/local/cuda/bin. Throws EnvironmentError if it is in none.
std::string find_sanitizer();

/// One worker process at a time, with bare memory (Call::bare), in which every run is watched.
class SanitizedWorker {
 public:
  /// `sanitizer`: the tool's path.
  SanitizedWorker(const std::string& sanitizer, const SanitizerOptions& options);
  ~SanitizedWorker();
  SanitizedWorker(const SanitizedWorker&) = delete;
  SanitizedWorker& operator=(const SanitizedWorker&) = delete;

  Runner& runner() { return *runner_; }
  /// Whether the tool has written something since the process began that is more than its banner. Waits for the tool to
  /// fall silent.
  bool has_spoken() const;
  /// Ends the process and takes all that the tool wrote about it.
  std::string close();

 private:
  std::string log() const;

  std::filesystem::path folder_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace assay
