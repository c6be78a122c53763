// The supervisor's side of a worker: requests with a deadline, and every way to fail turned into an outcome.
#include "kernels/worker.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/guard.h"
#include "kernels/process.h"
#include "kernels/protocol.h"
#include "kernels/shared_memory.h"
#include "oracle/error.h"

namespace assay {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStartDeadline{30'000};    ///< for the first reply of a program, at least
constexpr milliseconds kEndPatience{2'000};       ///< from the end of the channel to the end of the process
constexpr milliseconds kCheckerPatience{60'000};  ///< the same under a memory checker, which has its report to write

/// What came of one request: a reply, or the reason why there is none.
struct Exchange {
  std::optional<nlohmann::json> reply;
  std::string phase;  ///< of a plug-in, the last that its worker named
  RunStatus status = RunStatus::kCrashed;  ///< kCrashed or kHung, without a reply
  std::string reason;
};

class WorkerRunner final : public Runner {
 public:
  explicit WorkerRunner(WorkerOptions options) : options_(std::move(options)) {}
  ~WorkerRunner() override { leave(); }
  WorkerRunner(const WorkerRunner&) = delete;
  WorkerRunner& operator=(const WorkerRunner&) = delete;

  std::vector<KernelIdentity> kernels() override {
    const std::optional<Exchange> failure = start();
    if (failure && !failure->phase.empty())
      throw PluginGone(failure->status, options_.plugin + ": " + failure->reason);
    if (failure)
      throw EnvironmentError("worker " + options_.command.front() + " does not start: " + failure->reason);
    return kernels_;
  }

  void set_fill(int fill) override { fill_ = fill; }

  void restart() override { leave(); }

  DeviceInfo device() override {
    DeviceInfo info;
    std::optional<Exchange> answer = start();
    if (!answer) answer = ask({{"verb", "device"}}, std::max(options_.deadline, kStartDeadline));
    try {
      if (answer->reply) return device_from_json(answer->reply->at("device"));
      info.absent = "the worker does not say: " + answer->reason;
    } catch (const std::exception& error) {
      info.absent = std::string("the worker's reply makes no sense: ") + error.what();
    }
    return info;
  }

  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    if (std::optional<Exchange> failure = start()) return outcome_of(*failure);
    const auto named = [&](const KernelIdentity& identity) { return identity.name == kernel; };
    if (std::none_of(kernels_.begin(), kernels_.end(), named))
      throw InputError("kernel " + std::string(kernel) + ": the worker has none of that name");

    const ZonePlan plan(inputs, outputs);
    const std::span<std::byte> memory = memory_->resize(plan.bytes);
    const nlohmann::json request = place(kernel, params, inputs, outputs, plan, memory);
    const Exchange exchange = ask(request, options_.deadline);
    if (!exchange.reply) return outcome_of(exchange);
    RunOutcome outcome = read_outcome(*exchange.reply);
    inspect(outcome, inputs, outputs, plan, memory);
    return outcome;
  }

 private:
  /// Asks the process to end, and sees to it.
  void leave() {
    if (!process_) return;
    if (process_->channel().send({{"verb", "bye"}, {"id", ++id_}}, deadline(kEndPatience)) == Channel::Status::kOk)
      process_->end(end_patience());
    process_.reset();
  }

  milliseconds end_patience() const { return options_.bare ? kCheckerPatience : kEndPatience; }

  static Channel::Clock::time_point deadline(milliseconds from_now) { return Channel::Clock::now() + from_now; }

  static RunOutcome outcome_of(const Exchange& failure) {
    RunOutcome outcome;
    outcome.status = failure.status;
    outcome.reason = failure.reason;
    return outcome;
  }

  /// Starts the program if it does not run. Nothing if all is well.
  std::optional<Exchange> start() {
    if (process_) return std::nullopt;
    if (!memory_) memory_.emplace();
    std::vector<std::string> command = options_.command;
    if (!options_.plugin.empty()) command.insert(command.end(), {"--plugin", options_.plugin});
    process_.emplace(command, memory_->fd());
    Exchange hello =
        ask({{"verb", "hello"}, {"memory_fd", kChildMemoryFd}, {"deadline_ms", options_.deadline.count()}},
            std::max(options_.deadline, kStartDeadline));
    if (hello.reply) {
      try {
        kernels_.clear();
        if (!options_.plugin.empty()) read_plugin(*hello.reply);
        else
          for (const nlohmann::json& item : hello.reply->at("kernels")) kernels_.push_back(identity_from_json(item));
        return std::nullopt;
      } catch (const InputError&) {
        process_.reset();
        throw;
      } catch (const std::exception& error) {
        process_.reset();
        hello.reason = std::string("its first reply makes no sense: ") + error.what();
      }
    }
    return hello;
  }

  void read_plugin(const nlohmann::json& hello) {
    if (hello.contains("bad_plugin")) throw InputError(hello.at("bad_plugin").get<std::string>());
    kernels_ = options_.read_manifest(hello.at("manifest").get<std::string>());
  }

  /// Sends a request and waits for its reply. Whatever goes wrong ends the process; the next request starts a new one.
  Exchange ask(nlohmann::json request, milliseconds patience) {
    request["id"] = ++id_;
    Channel& channel = process_->channel();
    std::string line;
    Channel::Status status = channel.send(request, deadline(patience));
    Exchange exchange;
    if (status == Channel::Status::kOk) status = channel.receive(line, deadline(patience));
    while (status == Channel::Status::kOk && is_phase(line, exchange.phase)) {
      patience = options_.deadline;
      status = channel.receive(line, deadline(patience));
    }
    switch (status) {
      case Channel::Status::kOk: read_reply(line, exchange); break;
      case Channel::Status::kTimeout:
        exchange.status = RunStatus::kHung;
        exchange.reason = "no reply within " + std::to_string(patience.count()) + " ms";
        break;
      case Channel::Status::kClosed: exchange.reason = process_->end(kEndPatience); break;
      case Channel::Status::kTooLong: exchange.reason = "its reply is longer than a megabyte"; break;
    }
    if (!exchange.reply) process_.reset();
    if (!exchange.reply && !exchange.phase.empty()) exchange.reason = "in " + exchange.phase + ": " + exchange.reason;
    return exchange;
  }

  /// Whether a line is no reply but a plug-in's worker saying which call comes next.
  bool is_phase(const std::string& line, std::string& phase) const {
    if (options_.plugin.empty()) return false;
    const nlohmann::json note = nlohmann::json::parse(line, nullptr, false);
    if (!note.is_object() || !note.contains("phase") || !note["phase"].is_string()) return false;
    phase = note["phase"].get<std::string>();
    return true;
  }

  void read_reply(const std::string& line, Exchange& exchange) {
    try {
      nlohmann::json reply = nlohmann::json::parse(line);
      if (reply.at("id").get<std::int64_t>() != id_)
        exchange.reason = "it answers another request";
      else if (process_->channel().has_rest())
        exchange.reason = "it says more than one line";
      else
        exchange.reply = std::move(reply);
    } catch (const std::exception& error) {
      exchange.reason = std::string("its reply makes no sense: ") + error.what();
    }
  }

  /// Fills the zones and describes them.
  nlohmann::json place(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                       const std::vector<TensorLayout>& outputs, const ZonePlan& plan,
                       std::span<std::byte> memory) const {
    nlohmann::json request{{"verb", "run"},
                           {"kernel", kernel},
                           {"params", to_json(params)},
                           {"memory", plan.bytes},
                           {"fill", fill_},
                           {"bare", options_.bare},
                           {"deadline_ms", options_.deadline.count()},
                           {"inputs", nlohmann::json::array()},
                           {"outputs", nlohmann::json::array()}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorLayout& layout = inputs[i].layout;
      const std::span<std::byte> zone = zone_at(memory, plan.inputs[i], layout);
      fill_zone(zone, layout);
      std::copy(inputs[i].bytes.begin(), inputs[i].bytes.end(), zone.begin() + kGuardBytes);
      request["inputs"].push_back(to_json(layout, plan.inputs[i] + kGuardBytes));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      fill_zone(zone_at(memory, plan.outputs[i], outputs[i]), outputs[i]);
      request["outputs"].push_back(to_json(outputs[i], plan.outputs[i] + kGuardBytes));
    }
    return request;
  }

  static std::span<std::byte> zone_at(std::span<std::byte> memory, std::int64_t at, const TensorLayout& layout) {
    return memory.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(zone_bytes(layout)));
  }

  RunOutcome read_outcome(const nlohmann::json& reply) {
    static const std::string kReply = "worker's reply";
    RunOutcome outcome;
    try {
      const auto status = reply.at("status").get<std::string>();
      if (status != "ok" && status != "skipped" && status != "crashed") throw std::runtime_error("status " + status);
      outcome.reason = reply.at("reason").get<std::string>();
      outcome.facts.variant = reply.at("variant").get<std::string>();
      outcome.facts.device = reply.at("device").get<std::string>();
      outcome.broken = reply.at("broken").get<std::vector<std::string>>();
      outcome.spoiled = reply.at("spoiled").get<bool>();
      if (outcome.spoiled) {
        process_->end(end_patience());
        process_.reset();
      }
      outcome.declared = arithmetic_from_json(JsonField(reply.at("declared"), "declared", kReply));
      if (outcome.declared.tile_n < 0 || outcome.declared.splits < 0) throw std::runtime_error("a negative count");
      outcome.status = status == "ok"        ? RunStatus::kOk
                       : status == "skipped" ? RunStatus::kSkipped
                                             : RunStatus::kCrashed;
    } catch (const std::exception& error) {
      outcome = {};
      outcome.status = RunStatus::kCrashed;
      outcome.reason = std::string("its reply makes no sense: ") + error.what();
      process_.reset();
    }
    return outcome;
  }

  /// Compares inputs and guards with what was placed, and takes the outputs; never the worker's word for it.
  static void inspect(RunOutcome& outcome, const std::vector<Tensor>& inputs, const std::vector<TensorLayout>& outputs,
                      const ZonePlan& plan, std::span<std::byte> memory) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::span<std::byte> zone = zone_at(memory, plan.inputs[i], inputs[i].layout);
      const std::vector<std::byte>& bytes = inputs[i].bytes;
      const std::string name = "input " + inputs[i].layout.role;
      if (!std::equal(bytes.begin(), bytes.end(), zone.begin() + kGuardBytes))
        outcome.broken.push_back("changed " + name);
      if (!guards_intact(zone, inputs[i].layout)) outcome.broken.push_back("wrote outside " + name);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::span<std::byte> zone = zone_at(memory, plan.outputs[i], outputs[i]);
      if (!guards_intact(zone, outputs[i]) || !padding_intact(zone, outputs[i]))
        outcome.broken.push_back("wrote outside output " + outputs[i].role);
      if (outcome.status != RunStatus::kOk) continue;
      const auto storage = zone.begin() + kGuardBytes;
      outcome.outputs.push_back({outputs[i], {storage, storage + outputs[i].storage_bytes()}});
    }
  }

  WorkerOptions options_;
  std::optional<SharedMemory> memory_;
  std::optional<Process> process_;
  std::vector<KernelIdentity> kernels_;
  std::int64_t id_ = 0;
  int fill_ = 0;
};

}  // namespace

std::unique_ptr<Runner> worker_runner(WorkerOptions options) {
  return std::make_unique<WorkerRunner>(std::move(options));
}

}  // namespace assay
