// Sorting CUDA's errors into what the machine lacks, what ends the process, and the rest.
#include "kernels/device/check.cuh"

#include <unistd.h>

#include <stdexcept>
#include <string>

#include "kernels/incident.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

bool lacks_device(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorInitializationError: return true;
    default: return false;
  }
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  const std::string error = std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
  cudaGetLastError();  // an error that does not stick must not be found again by the next run
  if (lacks_device(status)) throw CannotRun("no CUDA device (" + error + ")");
  if (status == cudaErrorMemoryAllocation) throw CannotRun("out of device memory: " + std::string(what));
  if (status == cudaErrorNoKernelImageForDevice)
    throw CannotRun("this program has no code for the device (" + error + ")");
  const std::string text = std::string(what) + ": " + error;
  if (cudaDeviceSynchronize() != cudaSuccess) throw ProcessSpoiled(text + incident_notes(getpid()));
  throw std::runtime_error(text);
}

}  // namespace assay
