// Fuzz target: whatever a worker sends is either refused by an exception or read, written and read again as the same.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/targets/target.h"
#include "kernels/protocol.h"
#include "oracle/json_field.h"

namespace assay {
namespace {

using Json = nlohmann::json;

/// What `read` makes of the JSON, written, must be read as the same.
template <class Read, class Write>
void round_trip(const Json& json, const char* what, Read&& read, Write&& write) {
  Json once;
  try {
    once = write(read(json));
  } catch (const std::exception&) {
    return;
  }
  if (write(read(once)) == once) return;
  std::fprintf(stderr, "%s is not read as it was written\n", what);
  std::abort();
}

void read_all(const Json& json) {
  round_trip(json, "a kernel's identity", identity_from_json, [](const KernelIdentity& i) { return to_json(i); });
  round_trip(json, "a device", device_from_json, [](const DeviceInfo& d) { return to_json(d); });
  round_trip(json, "parameters", params_from_json, [](const Params& p) { return to_json(p); });
  std::int64_t at = 0;
  round_trip(
      json, "a layout", [&](const Json& j) { return layout_from_json(j, at); },
      [&](const TensorLayout& layout) { return to_json(layout, at); });
  round_trip(
      json, "an arithmetic", [](const Json& j) { return arithmetic_from_json(JsonField(j, "declared", "input")); },
      [](const Arithmetic& a) { return to_json(a); });
}

class WorkerProtocol final : public Target {
 public:
  int run(std::span<const std::uint8_t> input) override {
    constexpr std::size_t kPipe = 60000;  // below a pipe's capacity: nobody reads while this writes
    int ends[2];
    if (input.size() > kPipe || pipe(ends) != 0) return -1;
    const bool sent = ::write(ends[1], input.data(), input.size()) == static_cast<ssize_t>(input.size());
    close(ends[1]);
    Channel channel(ends[0], -1);
    for (std::string line; sent && channel.receive(line, Channel::Clock::time_point::max()) == Channel::Status::kOk;) {
      const Json json = Json::parse(line, nullptr, false);
      if (!json.is_discarded()) read_all(json);
    }
    close(ends[0]);
    return 0;
  }
};

const RegisterTarget kRegister({"worker_protocol", "any bytes as what a worker sends",
                                [](const std::string&, const TargetOptions&) -> std::unique_ptr<Target> {
                                  return std::make_unique<WorkerProtocol>();
                                }});

}  // namespace
}  // namespace assay
