// Spawning, killing and reaping a worker.
#include "kernels/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "oracle/error.h"

extern char** environ;  // NOLINT: the environment that posix_spawn passes on

namespace assay {
namespace {

/// posix_spawn's two option objects, destroyed with the scope.
struct SpawnOptions {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

  SpawnOptions(int socket, int memory_fd) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, memory_fd, kChildMemoryFd);
    posix_spawnattr_init(&attributes);
    sigset_t none, ours;
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGALRM);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
};

/// A connected pair; both ends clear of the numbers that the child's descriptors are moved to. Returns false with
/// errno.
bool socket_pair(int& ours, int& theirs) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  ours = fcntl(pair[0], F_DUPFD_CLOEXEC, 10);
  theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
  const int error = errno;
  close(pair[0]);
  close(pair[1]);
  if (ours >= 0 && theirs >= 0) return true;
  if (ours >= 0) close(ours);
  if (theirs >= 0) close(theirs);
  errno = error;
  return false;
}

}  // namespace

std::string ending_text(int status) {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* name = sigabbrev_np(signal);
  return "signal " + std::to_string(signal) + (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

Process::Process(const std::vector<std::string>& argv, int memory_fd) : channel_(-1, -1) {
  if (argv.empty()) throw EnvironmentError("worker: no program given");
  int theirs = -1;
  if (!socket_pair(fd_, theirs)) throw EnvironmentError(std::string("worker: no socket: ") + std::strerror(errno));
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const SpawnOptions options(theirs, memory_fd);
  const int error = posix_spawnp(&pid_, arguments[0], &options.actions, &options.attributes, arguments.data(), environ);
  close(theirs);
  if (error != 0) {
    close(fd_);
    throw EnvironmentError("worker: cannot start " + argv[0] + ": " + std::strerror(error));
  }
  channel_ = Channel(fd_, fd_);
}

Process::~Process() {
  if (!reaped_) kill();
  close(fd_);
}

bool Process::reap(bool block) {
  if (reaped_) return true;
  siginfo_t ended{};
  const int flags = WEXITED | WNOWAIT | (block ? 0 : WNOHANG);
  int got = -1;
  do got = waitid(P_PID, static_cast<id_t>(pid_), &ended, flags);
  while (got != 0 && errno == EINTR);
  if (got == 0 && ended.si_pid == 0) return false;
  ::kill(-pid_, SIGKILL);  // what it left behind in its group, while its number still stands for that group
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  return true;
}

void Process::kill() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);
  reap(true);
}

std::string Process::end(std::chrono::milliseconds patience) {
  const auto deadline = Channel::Clock::now() + patience;
  while (!reap(false)) {
    if (Channel::Clock::now() >= deadline) {
      kill();
      return "closed its control channel and did not end";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ending_text(status_);
}

}  // namespace assay
