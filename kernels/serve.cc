// The worker's side: reads requests, runs kernels on shared memory, replies.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "kernels/device_info.h"
#include "kernels/invoke.h"
#include "kernels/plugin/host.h"
#include "kernels/protocol.h"
#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// Shared memory of one request.
class Mapping {
 public:
  Mapping(int fd, std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    struct stat status {};
    if (bytes <= 0 || fstat(fd, &status) != 0 || bytes > status.st_size)
      throw std::runtime_error("the shared memory is smaller than " + std::to_string(bytes) + " bytes");
    void* start = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) throw std::runtime_error("cannot map the shared memory");
    start_ = static_cast<std::byte*>(start);
  }
  ~Mapping() { munmap(start_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* storage(const TensorLayout& layout, std::int64_t at) const {
    const auto bytes = static_cast<std::int64_t>(bytes_);
    if (layout.storage < 0 || at < 0 || at > bytes || layout.storage > (bytes - at) / bytes_per_element(layout.format))
      throw std::runtime_error("tensor " + layout.role + " lies outside the shared memory");
    return start_ + at;
  }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_;
};

struct Placed {
  TensorLayout layout;
  std::int64_t at = 0;
};

std::vector<Placed> placed_from_json(const nlohmann::json& json) {
  std::vector<Placed> tensors;
  for (const nlohmann::json& item : json) {
    Placed placed;
    placed.layout = layout_from_json(item, placed.at);
    tensors.push_back(std::move(placed));
  }
  return tensors;
}

std::string_view status_name(RunStatus status) {
  switch (status) {
    case RunStatus::kOk: return "ok";
    case RunStatus::kSkipped: return "skipped";
    default: return "crashed";
  }
}

nlohmann::json reply_with(const RunOutcome& outcome) {
  return {{"status", status_name(outcome.status)},
          {"reason", outcome.reason},
          {"variant", outcome.facts.variant},
          {"device", outcome.facts.device},
          {"broken", outcome.broken},
          {"declared", to_json(outcome.declared)},
          {"spoiled", outcome.spoiled}};
}

constexpr auto kNever = Channel::Clock::time_point::max();

/// What this process has to run: its linked kernels, or one plug-in's.
class Serving {
 public:
  Serving(const std::string& plugin, Channel& channel)
      : note_([this, &channel](std::string_view phase) {
          channel.send({{"phase", phase}}, kNever);
          alarm(patience_);
        }) {
    if (!plugin.empty()) plugin_.emplace(plugin);
  }

  /// From now on, and from every phase on, this process outlives its supervisor by seconds at most, even inside a
  /// kernel that hangs.
  void start_clock(const nlohmann::json& request) {
    patience_ = static_cast<unsigned>(request.at("deadline_ms").get<std::int64_t>() / 1000 + 5);
    alarm(patience_);
  }

  RunOutcome run(const std::string& name, const Call& call) {
    if (plugin_) return invoke([&](const Call& c) { return plugin_->run(name, c, note_); }, call);
    const Kernel* kernel = find_kernel(name);
    if (kernel == nullptr) throw std::runtime_error("there is no kernel " + name);
    return invoke(*kernel, call);
  }

  nlohmann::json hello(const nlohmann::json& request) {
    nlohmann::json reply;
    if (plugin_) {
      start_clock(request);
      try {
        reply["manifest"] = plugin_->manifest(note_);
      } catch (const InputError& error) {
        reply["bad_plugin"] = error.what();
      }
      alarm(0);
      return reply;
    }
    reply["kernels"] = nlohmann::json::array();
    for (const KernelIdentity& identity : linked_kernels()) reply["kernels"].push_back(to_json(identity));
    return reply;
  }

 private:
  unsigned patience_ = 0;  ///< seconds
  PhaseNote note_;
  std::optional<PluginHost> plugin_;
};

nlohmann::json run_request(const nlohmann::json& request, int memory_fd, Serving& serving) {
  const auto name = request.at("kernel").get<std::string>();
  const Params params = params_from_json(request.at("params"));
  const std::vector<Placed> inputs = placed_from_json(request.at("inputs"));
  const std::vector<Placed> outputs = placed_from_json(request.at("outputs"));
  const Mapping memory(memory_fd, request.at("memory").get<std::int64_t>());
  std::vector<TensorView> views;
  for (const Placed& input : inputs) views.push_back({&input.layout, memory.storage(input.layout, input.at)});
  std::vector<OutputView> targets;
  for (const Placed& output : outputs) targets.push_back({&output.layout, memory.storage(output.layout, output.at)});

  serving.start_clock(request);
  const Call call{params, views, targets, request.at("fill").get<int>(), request.at("bare").get<bool>()};
  const RunOutcome outcome = serving.run(name, call);
  alarm(0);
  return reply_with(outcome);
}

nlohmann::json run_or_say_why_not(const nlohmann::json& request, int memory_fd, Serving& serving) {
  try {
    return run_request(request, memory_fd, serving);
  } catch (const std::exception& error) {
    RunOutcome outcome;
    outcome.status = RunStatus::kCrashed;
    outcome.reason = std::string("worker: ") + error.what();
    return reply_with(outcome);
  }
}

/// Keeps a control channel on a standard stream to itself: moves it to a number of its own and lets `instead` stand in
/// for it meanwhile, so that a kernel may read, print or close what it likes.
class PrivateFd {
 public:
  PrivateFd(int fd, int standard, int instead) : fd_(fd), standard_(standard) {
    if (fd != standard || instead < 0) return;
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    moved_ = fd_ >= 0 && dup2(instead, standard) >= 0;
  }
  ~PrivateFd() {
    if (!moved_) return;
    dup2(fd_, standard_);
    close(fd_);
  }
  PrivateFd(const PrivateFd&) = delete;
  PrivateFd& operator=(const PrivateFd&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_, standard_;
  bool moved_ = false;
};

}  // namespace

int serve_worker(int in_fd, int out_fd, const std::string& plugin) {
  constexpr int kBroken = 2, kSpoiled = 4;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const PrivateFd in(in_fd, STDIN_FILENO, nothing);
  const PrivateFd out(out_fd, STDOUT_FILENO, STDERR_FILENO);
  if (nothing >= 0) close(nothing);
  Channel channel(in.fd(), out.fd());
  Serving serving(plugin, channel);
  int memory_fd = -1;
  std::string line;
  for (;;) {
    const Channel::Status status = channel.receive(line, kNever);
    if (status == Channel::Status::kClosed) return channel.has_rest() ? kBroken : 0;
    if (status != Channel::Status::kOk) return kBroken;
    nlohmann::json reply;
    try {
      const nlohmann::json request = nlohmann::json::parse(line);
      const auto verb = request.at("verb").get<std::string>();
      if (verb == "bye") return 0;
      if (verb == "hello") {
        memory_fd = request.at("memory_fd").get<int>();
        reply = serving.hello(request);
      } else if (verb == "run") {
        reply = run_or_say_why_not(request, memory_fd, serving);
      } else if (verb == "device") {
        reply["device"] = to_json(device_info());
      } else {
        return kBroken;
      }
      reply["id"] = request.at("id");
    } catch (const std::exception&) {
      return kBroken;  // not our supervisor's language
    }
    if (channel.send(reply, kNever) != Channel::Status::kOk) return kBroken;
    // No destructors: they might wait for a device that no longer answers.
    if (reply.value("spoiled", false)) _exit(kSpoiled);
  }
}

}  // namespace assay
