// Starting, draining and ending an engine.
#include "fuzz/engine_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include "kernels/process.h"
#include "oracle/error.h"

extern char** environ;  // NOLINT: the environment that execve passes on

namespace assay {
namespace {

constexpr std::size_t kTail = 64 << 10;
constexpr std::chrono::milliseconds kPoll{10};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced =
        std::any_of(more.begin(), more.end(), [&](const auto& pair) { return text.starts_with(pair.first + "="); });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

/// The child's side, between fork and exec: system calls only. `parent` guards against its end before prctl.
[[noreturn]] void become(char* const* argv, char* const* environment, int output, int errors, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execve(argv[0], argv, environment);
  const char* reason = std::strerror(errno);
  for (const char* part : {"cannot start ", static_cast<const char*>(argv[0]), ": ", reason, "\n"})
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  _exit(127);
}

}  // namespace

EngineProcess::EngineProcess(const std::vector<std::string>& argv,
                             const std::vector<std::pair<std::string, std::string>>& environment, Keep keep)
    : started_(Clock::now()) {
  std::array<int, 2> ends{}, error_ends{-1, -1};
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    for (const int fd : {output_.fd, errors_.fd})
      if (fd >= 0) close(fd);
    throw EnvironmentError(argv.at(0) + ": " + what + ": " + reason);
  };
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe");
  output_.fd = ends[0];
  if (keep == Keep::kOutput && pipe2(error_ends.data(), O_CLOEXEC) != 0) fail("no pipe");
  errors_.fd = error_ends[0];
  const int errors = keep == Keep::kOutput ? error_ends[1] : ends[1];
  for (const int fd : {output_.fd, errors_.fd})
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  const std::vector<std::string> variables = merged_environment(environment);
  const std::vector<char*> words = pointers(argv), entries = pointers(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(words.data(), entries.data(), ends[1], errors, parent);
  const int error = errno;
  close(ends[1]);
  if (errors != ends[1]) close(errors);
  errno = error;
  if (pid_ < 0) fail("cannot be started");
}

EngineProcess::~EngineProcess() {
  kill();
  close(output_.fd);
  if (errors_.fd >= 0) close(errors_.fd);
}

void EngineProcess::Stream::drain() {
  if (fd < 0) return;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > 2 * kTail) cut();
  }
}

void EngineProcess::Stream::cut() {
  if (text.size() > kTail) text.erase(0, text.size() - kTail);
}

bool EngineProcess::ended() {
  output_.drain();
  errors_.drain();
  if (reaped_) return true;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid == 0) return false;
  kill();
  return true;
}

bool EngineProcess::wait_until(Clock::time_point time) {
  while (!ended()) {
    if (Clock::now() >= time) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

void EngineProcess::ask_to_stop() {
  if (!reaped_) ::kill(pid_, SIGTERM);
}

void EngineProcess::kill() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);  // before it is reaped, while its number still stands for the group
  ::kill(pid_, SIGKILL);   // where it has not made its group yet
  rusage usage{};
  while (wait4(pid_, &status_, 0, &usage) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  cpu_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  for (Stream* stream : {&output_, &errors_}) {
    stream->drain();
    stream->cut();
  }
}

double EngineProcess::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (reaped_ || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return cpu_seconds_;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool EngineProcess::signalled() const { return WIFSIGNALED(status_); }

int EngineProcess::code() const { return WIFSIGNALED(status_) ? WTERMSIG(status_) : WEXITSTATUS(status_); }

std::string EngineProcess::how() const { return ending_text(status_); }

std::string output_of(const std::vector<std::string>& argv, std::chrono::milliseconds patience) {
  EngineProcess process(argv, {}, EngineProcess::Keep::kOutput);
  const bool ended = process.wait_until(EngineProcess::Clock::now() + patience);
  process.kill();
  if (!ended || process.signalled() || process.code() != 0)
    throw EnvironmentError(argv.at(0) + " " + (argv.size() > 1 ? argv[1] : "") + ": " +
                           (ended ? process.how() : "did not end") + ": " + process.errors());
  return process.tail();
}

}  // namespace assay
