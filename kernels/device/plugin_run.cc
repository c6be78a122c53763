// A plug-in's kernel on the device: the same upload, guards and checks as for kernels of this program.
#include <vector>

#include "kernels/device/device_call.h"
#include "kernels/plugin/device_hook.h"

namespace assay {
namespace {

/// The C form of every tensor, at the device address of its first element.
template <class Views, class Find>
std::vector<assay_tensor> device_tensors(const Views& views, std::int32_t device, const Find& find) {
  std::vector<assay_tensor> tensors;
  for (const auto& view : views) {
    const TensorLayout& layout = *view.layout;
    auto* first = find(layout.role).storage + layout.offset * bytes_per_element(layout.format);
    tensors.push_back(plugin_tensor(layout, const_cast<std::byte*>(first), device));
  }
  return tensors;
}

RunFacts run_on_device(const Call& call, const PluginLaunch& launch) {
  constexpr std::int32_t kDevice = 0;  // the one that DeviceCall uses
  DeviceCall device(call);
  const std::string variant =
      launch(device_tensors(call.inputs, kDevice, [&](const std::string& role) { return device.input(role); }),
             device_tensors(call.outputs, kDevice, [&](const std::string& role) { return device.output(role); }),
             {kDevice, device.stream()});
  device.launched("the plug-in's kernel");
  return device.finish(variant);
}

const RegisterDevicePluginRun kRegister(run_on_device);

}  // namespace
}  // namespace assay
