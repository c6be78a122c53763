// What is known of the CUDA device that kernels of this program run on.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

struct DeviceInfo {
  std::string absent;      ///< why there is none; the other fields are empty then
  std::string name;        ///< "NVIDIA H200"
  std::string capability;  ///< "9.0"
  std::string driver;      ///< version of the driver, where the system shows it, and the newest CUDA it serves
  std::string runtime;     ///< CUDA version this program is linked with
  int multiprocessors = 0;
  std::int64_t memory = 0;  ///< bytes
  int count = 0;            ///< devices that this process may use; the fields above are the first one's

  /// One line: "NVIDIA H200, compute capability 9.0, driver 580.95.05 (CUDA 13.0), runtime 13.0", or why there is none.
  std::string text() const;
};

/// Asks CUDA on the first call and keeps the answer. Without device code in this program: absent.
const DeviceInfo& device_info();

/// Device code registers how to ask; there is at most one.
struct RegisterDeviceInfo {
  explicit RegisterDeviceInfo(DeviceInfo (*ask)());
};

}  // namespace assay
