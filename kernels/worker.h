// Worker: a spawned (exec) process that runs many cases; a deadline; crash and hang become outcomes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

struct WorkerOptions {
  std::vector<std::string> command;            ///< argv of the worker program, e.g. {"/path/assay", "worker"}
  std::chrono::milliseconds deadline{60'000};  ///< per case
  bool bare = false;                           ///< Call::bare of every run
};

/// A runner whose kernels live in a child process, started on first use and restarted after a crash or a hang.
/// Throws EnvironmentError if the program cannot be started.
std::unique_ptr<Runner> worker_runner(WorkerOptions options);

/// The child's main loop: control as one JSON object per line on `in`/`out` file descriptors, tensors in shared memory.
/// Returns the exit code.
int serve_worker(int in_fd, int out_fd);

}  // namespace assay
