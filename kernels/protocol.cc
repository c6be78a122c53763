// JSON forms and line transport of the worker protocol.
#include "kernels/protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace assay {
namespace {

template <class Enum>
Enum enum_from(const nlohmann::json& json, std::string_view key, Enum last) {
  const auto value = json.at(key).get<std::int64_t>();
  if (value < 0 || value > static_cast<std::int64_t>(last))
    throw std::runtime_error(std::string(key) + " = " + std::to_string(value) + " is out of range");
  return static_cast<Enum>(value);
}

constexpr auto kLastFormat = static_cast<Format>(kFormatCount - 1);

/// Waits until `fd` is ready for `events`. False at the deadline.
bool wait_for(int fd, short events, Channel::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Channel::Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left < 1'000'000 ? left : 1'000'000));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the read or write will say what is wrong
  }
}

}  // namespace

nlohmann::json to_json(const TensorLayout& layout, std::int64_t at) {
  return {{"role", layout.role},
          {"format", static_cast<int>(layout.format)},
          {"shape", layout.shape},
          {"strides", layout.strides},
          {"offset", layout.offset},
          {"storage", layout.storage},
          {"at", at}};
}

TensorLayout layout_from_json(const nlohmann::json& json, std::int64_t& at) {
  TensorLayout layout;
  layout.role = json.at("role").get<std::string>();
  layout.format = enum_from(json, "format", kLastFormat);
  layout.shape = json.at("shape").get<std::vector<std::int64_t>>();
  layout.strides = json.at("strides").get<std::vector<std::int64_t>>();
  layout.offset = json.at("offset").get<std::int64_t>();
  layout.storage = json.at("storage").get<std::int64_t>();
  at = json.at("at").get<std::int64_t>();
  if (layout.shape.size() != layout.strides.size()) throw std::runtime_error("shape and strides differ in length");
  return layout;
}

nlohmann::json to_json(const Params& params) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [key, value] : params.items) json.push_back({key, value});
  return json;
}

Params params_from_json(const nlohmann::json& json) {
  Params params;
  for (const nlohmann::json& item : json)
    params.items.emplace_back(item.at(0).get<std::string>(), item.at(1).get<std::string>());
  return params;
}

nlohmann::json to_json(const KernelIdentity& identity) {
  return {{"name", identity.name},       {"op", identity.op},         {"summary", identity.summary},
          {"expects", identity.expects}, {"mutant", identity.mutant}, {"device", identity.device},
          {"dtypes", identity.dtypes},   {"base", identity.base},     {"fault", identity.fault},
          {"report", identity.report}};
}

KernelIdentity identity_from_json(const nlohmann::json& json) {
  return {json.at("name").get<std::string>(),
          json.at("op").get<std::string>(),
          json.at("summary").get<std::string>(),
          json.at("expects").get<std::string>(),
          json.at("mutant").get<bool>(),
          json.at("device").get<bool>(),
          json.at("dtypes").get<std::vector<std::string>>(),
          {},
          json.at("base").get<std::string>(),
          json.at("fault").get<std::string>(),
          json.at("report").get<std::string>()};
}

nlohmann::json to_json(const DeviceInfo& device) {
  return {{"absent", device.absent}, {"name", device.name},       {"capability", device.capability},
          {"driver", device.driver}, {"runtime", device.runtime}, {"multiprocessors", device.multiprocessors},
          {"memory", device.memory}, {"count", device.count}};
}

DeviceInfo device_from_json(const nlohmann::json& json) {
  return {json.at("absent").get<std::string>(),     json.at("name").get<std::string>(),
          json.at("capability").get<std::string>(), json.at("driver").get<std::string>(),
          json.at("runtime").get<std::string>(),    json.at("multiprocessors").get<int>(),
          json.at("memory").get<std::int64_t>(),    json.at("count").get<int>()};
}

Channel::Status Channel::send(const nlohmann::json& message, Clock::time_point deadline) {
  // Texts of kernels and case lines may hold any bytes: what is not UTF-8 is replaced.
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    if (!wait_for(out_fd_, POLLOUT, deadline)) return Status::kTimeout;
    ssize_t n = ::send(out_fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == ENOTSOCK) n = ::write(out_fd_, line.data() + sent, line.size() - sent);
    if (n >= 0)
      sent += static_cast<std::size_t>(n);
    else if (errno != EINTR && errno != EAGAIN)
      return Status::kClosed;
  }
  return Status::kOk;
}

Channel::Status Channel::receive(std::string& line, Clock::time_point deadline) {
  for (std::size_t searched = 0;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return Status::kOk;
    }
    searched = buffer_.size();
    if (searched > kLongestLine) return Status::kTooLong;
    if (!wait_for(in_fd_, POLLIN, deadline)) return Status::kTimeout;
    char chunk[65536];
    const ssize_t n = ::read(in_fd_, chunk, sizeof chunk);
    if (n > 0)
      buffer_.append(chunk, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
      return Status::kClosed;
  }
}

}  // namespace assay
