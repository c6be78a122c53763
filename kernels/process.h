// A child process with a control channel: spawn, end, and how it ended in words.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "kernels/protocol.h"

namespace assay {

/// The number under which a child inherits the shared memory.
inline constexpr int kChildMemoryFd = 3;

/// How a process ended, from waitpid's status: "exit 3", "signal 11 (SIGSEGV)".
std::string ending_text(int status);

class Process {
 public:
  /// Starts argv (found on PATH) in its own process group, with a socket as standard input and output and `memory_fd`
  /// as kChildMemoryFd. Throws EnvironmentError if it cannot be started.
  Process(const std::vector<std::string>& argv, int memory_fd);
  /// Kills and reaps it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Channel& channel() { return channel_; }
  /// Waits until it has ended; kills it after `patience`. Returns "exit 3", "signal 11 (SIGSEGV)", or that it had to be
  /// killed.
  std::string end(std::chrono::milliseconds patience);
  void kill();

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
  int fd_ = -1;
  Channel channel_;
};

}  // namespace assay
