// Upload, checks and download around the launches of one call.
#include "kernels/device/device_call.h"

#include <list>
#include <utility>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/check.cuh"
#include "kernels/device_info.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

/// What stands in a workspace: a NaN in every float format and -1 in integers, or numbers near the largest of fp16.
unsigned char poison_byte(int fill) { return fill == 0 ? 0xff : 0x7b; }

void ensure_device() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "looking for devices");
  check_cuda(cudaFree(nullptr), "starting the device");
}

template <class View>
std::span<const std::byte> storage_of(const View& view) {
  return {view.storage, static_cast<std::size_t>(view.layout->storage_bytes())};
}

template <class Byte, class View>
BasicDeviceTensor<Byte> find(std::string_view role, std::span<const View> views, const std::vector<DeviceZone>& zones) {
  for (std::size_t i = 0; i < views.size(); ++i)
    if (views[i].layout->role == role) return {views[i].layout, zones[i].storage()};
  return {};
}

template <class Tensor>
Tensor required(Tensor tensor, std::string_view role) {
  if (!tensor) throw std::invalid_argument("the call has no tensor " + std::string(role));
  return tensor;
}

}  // namespace

struct DeviceCall::State {
  explicit State(const Call& host) : call(host) {}

  DeviceZone::Guards guards() const { return call.bare ? DeviceZone::Guards::kNone : DeviceZone::Guards::kBoth; }
  DeviceZone zone(std::string name, std::int64_t bytes) { return {std::move(name), bytes, guards(), stream}; }

  const Call& call;
  DeviceStream stream;
  std::vector<DeviceZone> inputs, outputs;
  std::list<DeviceZone> workspaces;
};

DeviceCall::DeviceCall(const Call& call) {
  ensure_device();
  state_ = std::make_unique<State>(call);
  for (const TensorView& input : call.inputs) {
    state_->inputs.push_back(state_->zone("input " + input.layout->role, input.layout->storage_bytes()));
    state_->inputs.back().upload(storage_of(input), state_->stream);
  }
  for (const OutputView& output : call.outputs) {
    state_->outputs.push_back(state_->zone("output " + output.layout->role, output.layout->storage_bytes()));
    // The canary, as the caller wrote it. A memory checker should see that nobody wrote these bytes instead.
    if (!call.bare) state_->outputs.back().upload(storage_of(output), state_->stream);
  }
}

DeviceCall::~DeviceCall() = default;

const Params& DeviceCall::params() const { return state_->call.params; }

DeviceInput DeviceCall::find_input(std::string_view role) const {
  return find<const std::byte>(role, state_->call.inputs, state_->inputs);
}

DeviceOutput DeviceCall::find_output(std::string_view role) const {
  return find<std::byte>(role, state_->call.outputs, state_->outputs);
}

DeviceInput DeviceCall::input(std::string_view role) const { return required(find_input(role), role); }

DeviceOutput DeviceCall::output(std::string_view role) const { return required(find_output(role), role); }

void* DeviceCall::workspace_bytes(std::string_view name, std::int64_t bytes) {
  state_->workspaces.push_back(state_->zone("workspace " + std::string(name), bytes));
  DeviceZone& zone = state_->workspaces.back();
  if (!state_->call.bare) zone.fill(poison_byte(state_->call.fill), state_->stream);
  return zone.storage();
}

CUstream_st* DeviceCall::stream() const { return state_->stream.get(); }

void DeviceCall::launched(std::string_view kernel) {
  check_cuda(cudaGetLastError(), "launch of " + std::string(kernel));
}

RunFacts DeviceCall::finish(std::string variant) {
  const State& s = *state_;
  s.stream.wait();
  RunFacts facts{std::move(variant), device_info().text()};
  if (s.call.bare) return facts;
  std::vector<std::string> findings;
  const auto note = [&](std::optional<std::string> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    note(s.inputs[i].broken_guard(s.stream));
    note(s.inputs[i].changed(storage_of(s.call.inputs[i]), s.stream));
  }
  for (const DeviceZone& zone : s.outputs) note(zone.broken_guard(s.stream));
  for (const DeviceZone& zone : s.workspaces) note(zone.broken_guard(s.stream));
  if (!findings.empty()) throw InvariantsBroken(std::move(findings));
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    const OutputView& host = s.call.outputs[i];
    s.outputs[i].download({host.storage, static_cast<std::size_t>(host.layout->storage_bytes())}, s.stream);
  }
  return facts;
}

}  // namespace assay
