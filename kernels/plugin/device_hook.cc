// Where device code leaves its function for plug-ins' kernels.
#include "kernels/plugin/device_hook.h"

namespace assay {
namespace {

DevicePluginRun registered = nullptr;  // constant initialisation: set before or after this file's other objects alike

}  // namespace

RegisterDevicePluginRun::RegisterDevicePluginRun(DevicePluginRun run) { registered = run; }

DevicePluginRun device_plugin_run() { return registered; }

}  // namespace assay
