// The hook through which device code, where this program has any, runs a plug-in's kernel on tensors in device memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/plugin/call.h"

namespace assay {

/// Calls the plug-in with tensors that lie where `place` says; returns the variant.
using PluginLaunch = std::function<std::string(const std::vector<assay_tensor>& inputs,
                                               const std::vector<assay_tensor>& outputs, const PluginPlace& place)>;
/// Uploads the tensors of `call`, launches, checks and downloads.
using DevicePluginRun = RunFacts (*)(const Call& call, const PluginLaunch& launch);

/// Null in a program without device code.
DevicePluginRun device_plugin_run();

/// Device code registers its function; there is at most one.
struct RegisterDevicePluginRun {
  explicit RegisterDevicePluginRun(DevicePluginRun run);
};

}  // namespace assay
