// Upload, checks and download around the launches of one call.
#include "kernels/device/device_call.h"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/check.cuh"
#include "kernels/device/guarded_block.h"
#include "kernels/device_info.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

/// What stands in a workspace: a NaN in every float format and -1 in integers, or numbers near the largest of fp16.
unsigned char poison_byte(int fill) { return fill == 0 ? 0xff : 0x7b; }

void ensure_device() {
  static const bool started = [] {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "looking for devices");
    check_cuda(cudaFree(nullptr), "starting the device");
    return true;
  }();  // tried again by the next call if it throws
  static_cast<void>(started);
}

/// Calls of one thread follow one another, so that they can share a stream.
const DeviceStream& stream_of_thread() {
  thread_local const DeviceStream stream;
  return stream;
}

template <class View>
std::span<const std::byte> storage_of(const View& view) {
  return {view.storage, static_cast<std::size_t>(view.layout->storage_bytes())};
}

template <class View>
std::optional<std::size_t> find(std::string_view role, std::span<const View> views) {
  for (std::size_t i = 0; i < views.size(); ++i)
    if (views[i].layout->role == role) return i;
  return std::nullopt;
}

template <class Tensor>
Tensor required(Tensor tensor, std::string_view role) {
  if (!tensor) throw std::invalid_argument("the call has no tensor " + std::string(role));
  return tensor;
}

}  // namespace

struct DeviceCall::State {
  explicit State(const Call& host) : call(host) {
    if (!call.bare) {
      place_guarded();
      return;
    }
    for (const TensorView& input : call.inputs) {
      exact.push_back(zone("input " + input.layout->role, input.layout->storage_bytes()));
      exact.back().upload(storage_of(input), stream);
    }
    // No canary: a memory checker should see that nobody wrote these bytes.
    for (const OutputView& output : call.outputs)
      exact.push_back(zone("output " + output.layout->role, output.layout->storage_bytes()));
  }

  void place_guarded() {
    std::vector<GuardedZone> zones;
    for (const TensorView& input : call.inputs)
      zones.push_back({"input " + input.layout->role, input.layout->storage_bytes()});
    for (const OutputView& output : call.outputs)
      zones.push_back({"output " + output.layout->role, output.layout->storage_bytes()});
    block.emplace(std::move(zones));
    std::size_t i = 0;
    for (const TensorView& input : call.inputs) std::ranges::copy(storage_of(input), block->image(i++).begin());
    for (const OutputView& output : call.outputs)  // the canary, as the caller wrote it
      std::ranges::copy(storage_of(output), block->image(i++).begin());
    block->upload(stream);
  }

  DeviceZone::Guards guards() const { return call.bare ? DeviceZone::Guards::kNone : DeviceZone::Guards::kBoth; }
  DeviceZone zone(std::string name, std::int64_t bytes) const { return {std::move(name), bytes, guards(), stream}; }
  /// Of tensor i, inputs first.
  std::byte* storage(std::size_t i) const { return block ? block->storage(i) : exact[i].storage(); }

  const Call& call;
  const DeviceStream& stream = stream_of_thread();
  std::optional<GuardedBlock> block;  ///< of inputs and outputs
  std::vector<DeviceZone> exact;      ///< the same for a memory checker
  std::list<DeviceZone> workspaces;
};

DeviceCall::DeviceCall(const Call& call) {
  ensure_device();
  state_ = std::make_unique<State>(call);
}

DeviceCall::~DeviceCall() = default;

const Params& DeviceCall::params() const { return state_->call.params; }

DeviceInput DeviceCall::find_input(std::string_view role) const {
  const std::optional<std::size_t> at = find(role, state_->call.inputs);
  if (!at) return {};
  return {state_->call.inputs[*at].layout, state_->storage(*at)};
}

DeviceOutput DeviceCall::find_output(std::string_view role) const {
  const std::optional<std::size_t> at = find(role, state_->call.outputs);
  if (!at) return {};
  return {state_->call.outputs[*at].layout, state_->storage(state_->call.inputs.size() + *at)};
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
  if (s.block) s.block->download(s.stream);
  s.stream.wait();
  RunFacts facts{std::move(variant), device_info().text()};
  if (!s.block) return facts;
  std::vector<std::string> findings;
  const auto note = [&](std::optional<std::string> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  const std::size_t inputs = s.call.inputs.size(), outputs = s.call.outputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    note(s.block->broken_guard(i));
    note(s.block->changed(i, storage_of(s.call.inputs[i])));
  }
  for (std::size_t i = 0; i < outputs; ++i) note(s.block->broken_guard(inputs + i));
  for (const DeviceZone& zone : s.workspaces) note(zone.broken_guard(s.stream));
  if (!findings.empty()) throw InvariantsBroken(std::move(findings));
  for (std::size_t i = 0; i < outputs; ++i) std::ranges::copy(s.block->image(inputs + i), s.call.outputs[i].storage);
  return facts;
}

}  // namespace assay
