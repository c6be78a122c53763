// Worker: a spawned (exec) process that runs many cases; a deadline; crash and hang become outcomes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/runner.h"

namespace assay {

struct WorkerOptions {
  std::vector<std::string> command;            ///< argv of the worker program, e.g. {"/path/assay", "worker"}
  std::chrono::milliseconds deadline{60'000};  ///< per case; per call into a plug-in
  bool bare = false;                           ///< Call::bare of every run
  std::string plugin = {};  ///< a shared object whose kernels the worker serves, instead of the program's own
  /// What a plug-in's manifest says. May throw InputError.
  std::function<std::vector<KernelIdentity>(const std::string& manifest)> read_manifest = {};
};

/// A worker ended, or did not answer, before it could say which kernels its plug-in has.
struct PluginGone : std::runtime_error {
  PluginGone(RunStatus how, const std::string& what) : std::runtime_error(what), status(how) {}
  RunStatus status;  ///< kCrashed or kHung
};

/// A runner whose kernels live in a child process, started on first use and restarted after a crash or a hang.
/// Throws EnvironmentError if the program cannot be started; `kernels` throws PluginGone and InputError for a plug-in.
std::unique_ptr<Runner> worker_runner(WorkerOptions options);

/// The child's main loop: control as one JSON object per line on `in`/`out` file descriptors, tensors in shared memory.
/// `plugin`: the file of a plug-in whose kernels are served instead of those linked into this program. Returns the exit
/// code.
int serve_worker(int in_fd, int out_fd, const std::string& plugin = {});

}  // namespace assay
