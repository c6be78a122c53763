// The device in words, and whom to ask about it.
#include "kernels/device_info.h"

namespace assay {
namespace {

DeviceInfo (*asker)() = nullptr;  // constant initialisation: set before or after this file's other objects alike

}  // namespace

RegisterDeviceInfo::RegisterDeviceInfo(DeviceInfo (*ask)()) { asker = ask; }

std::string DeviceInfo::text() const {
  if (!absent.empty()) return absent;
  return name + ", compute capability " + capability + ", driver " + driver + ", runtime " + runtime;
}

const DeviceInfo& device_info() {
  static const DeviceInfo kInfo = [] {
    if (asker != nullptr) return asker();
    DeviceInfo none;
    none.absent = "this program is built without device code";
    return none;
  }();
  return kInfo;
}

}  // namespace assay
