// The worker's protocol: JSON forms of what travels over the control channel, and the channel itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/device_info.h"
#include "kernels/runner.h"
#include "oracle/arithmetic_json.h"

namespace assay {

// One JSON object per line in each direction; a reply carries its request's `id`.
//   {verb: hello, id, memory_fd, deadline_ms}  -> {id, kernels: [{name, op, summary, expects, mutant, device, dtypes, base,
//                                                 fault, report}]}
//   {verb: run, id, kernel, params, memory, inputs, outputs, fill, bare, deadline_ms}
//                                              -> {id, status: ok | skipped | crashed, reason, variant, device, broken,
//                                                  declared, spoiled}; after spoiled: true the worker ends
//   {verb: device, id}                         -> {id, device: {absent, name, capability, driver, runtime,
//                                                  multiprocessors, memory}}
// The worker of a plug-in answers hello with {id, manifest} or {id, bad_plugin: why}, and sends {phase} before every
// call into it: the last phase says where a worker that is gone was.
//   {verb: bye, id}                            -> the worker exits with 0
// `memory` is the size in bytes of the shared memory behind memory_fd; tensors are {layout..., at}, `at` the byte
// position of their storage there.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;

nlohmann::json to_json(const TensorLayout& layout, std::int64_t at);
nlohmann::json to_json(const Params& params);
nlohmann::json to_json(const KernelIdentity& identity);
nlohmann::json to_json(const DeviceInfo& device);

// Readers throw std::exception (nlohmann's or std::runtime_error) for anything malformed or out of range.
TensorLayout layout_from_json(const nlohmann::json& json, std::int64_t& at);
Params params_from_json(const nlohmann::json& json);
KernelIdentity identity_from_json(const nlohmann::json& json);
DeviceInfo device_from_json(const nlohmann::json& json);

/// Lines over a socket or a pair of pipes. Owns nothing.
class Channel {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Status : std::uint8_t { kOk, kTimeout, kClosed, kTooLong };

  Channel(int in_fd, int out_fd) : in_fd_(in_fd), out_fd_(out_fd) {}
  /// Sends one line. With a socket a vanished peer is kClosed, never a signal.
  Status send(const nlohmann::json& message, Clock::time_point deadline);
  Status receive(std::string& line, Clock::time_point deadline);
  /// Bytes that came after the last line.
  bool has_rest() const { return !buffer_.empty(); }

 private:
  int in_fd_, out_fd_;
  std::string buffer_;
};

}  // namespace assay
