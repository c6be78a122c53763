// Asking the CUDA runtime about the device.
#include "kernels/device_info.h"

#include <fstream>
#include <string>

#include "kernels/device/check.cuh"

namespace assay {
namespace {

/// 13000 -> "13.0".
std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

/// "580.95.05" of the loaded kernel module; empty if the system does not show it.
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return {};
}

DeviceInfo ask() {
  DeviceInfo device;
  try {
    int index = 0, driver = 0, runtime = 0;
    check_cuda(cudaGetDevice(&index), "looking for devices");
    check_cuda(cudaGetDeviceCount(&device.count), "counting devices");
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, index), "reading the device's properties");
    check_cuda(cudaDriverGetVersion(&driver), "reading the driver's version");
    check_cuda(cudaRuntimeGetVersion(&runtime), "reading the runtime's version");
    device.name = properties.name;
    device.capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
    const std::string module = module_version();
    device.driver = module.empty() ? "for CUDA " + version(driver) : module + " (CUDA " + version(driver) + ")";
    device.runtime = version(runtime);
    device.multiprocessors = properties.multiProcessorCount;
    device.memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  } catch (const std::exception& error) {
    device.absent = error.what();
  }
  return device;
}

const RegisterDeviceInfo kAsk{ask};

}  // namespace
}  // namespace assay
